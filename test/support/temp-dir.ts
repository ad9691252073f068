/** A directory of its own for a test. */
import fs from "node:fs";
import os from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";

/** Says what is to be done at the end: of the running test, or with Vitest's `afterAll` of a whole suite. */
export type OnEnd = (work: () => void | Promise<void>) => void;

/**
 * Makes an empty directory that is removed at the end (by default of the running test), whatever the outcome.
 * @param parent the folder in which it is made
 */
export function tempDir(onEnd: OnEnd = onTestFinished, parent: string = os.tmpdir()): string {
  const dir = fs.mkdtempSync(join(fs.realpathSync(parent), "mailchute-test-"));
  onEnd(() => {
    fs.rmSync(dir, { recursive: true, force: true, maxRetries: 5, retryDelay: 20 });
  });
  return dir;
}
