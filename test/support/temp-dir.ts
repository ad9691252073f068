/** A directory of its own for a test. */
import fs from "node:fs";
import os from "node:os";
import { join } from "node:path";
import { afterAll, onTestFinished } from "vitest";
import { endWithThisProcess, isKept, TEMP_NAME } from "./left-over.ts";

/** Says what is to be done at the end: of the running test, or with Vitest's `afterAll` of the suite that is being declared. */
export type OnEnd = (work: () => void | Promise<void>) => void;

/**
 * For what a `beforeAll` makes. Call it where the file declares its tests: once they run, Vitest takes an `afterAll` and never calls it.
 */
export function endOfFile(): OnEnd {
  const works: (() => void | Promise<void>)[] = [];
  afterAll(async () => {
    for (const work of works.reverse()) await work();
  });
  return (work) => void works.push(work);
}

/**
 * Makes an empty directory that is removed at the end (by default of the running test), whatever the outcome; with `MAILCHUTE_TEST_KEEP=1` it
 * stays, for a look at what a failure has left.
 * @param parent the folder in which it is made
 */
export function tempDir(onEnd: OnEnd = onTestFinished, parent: string = os.tmpdir()): string {
  endWithThisProcess();
  const dir = fs.mkdtempSync(join(fs.realpathSync(parent), TEMP_NAME));
  if (!isKept)
    onEnd(() => {
      fs.rmSync(dir, { recursive: true, force: true, maxRetries: 5, retryDelay: 20 });
    });
  return dir;
}
