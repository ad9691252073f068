/** A directory of its own for a test. */
import fs from "node:fs";
import os from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";

/** Makes an empty directory that is removed when the running test is over, whatever its outcome. */
export function tempDir(): string {
  const dir = fs.mkdtempSync(join(fs.realpathSync(os.tmpdir()), "mailchute-test-"));
  onTestFinished(() => {
    fs.rmSync(dir, { recursive: true, force: true, maxRetries: 5, retryDelay: 20 });
  });
  return dir;
}
