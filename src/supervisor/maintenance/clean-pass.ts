/** A sweep in pieces: its generator yields after each name that it looked at. */
import fs from "node:fs";
import { nodeStorage } from "../../mailbox/files/node-storage.ts";

/** Returns how many files were removed (or would be). */
export type CleanPass = Generator<undefined, number, unknown>;

/** The rules of a pass. */
export interface CleanRules {
  /** By the clock of the file system (`Sweep.nowMs`), which may differ from our own. */
  nowMs: number;
  isDryRun?: boolean;
}

/** Runs a whole pass at once. @returns what the pass returns */
export function finishPass(pass: CleanPass): number {
  for (;;) {
    const { done, value } = pass.next();
    if (done === true) return value;
  }
}

/** The names in a directory, in pieces. A directory that cannot be listed yields no name, so its files stay. */
export function* namesIn(dir: string): Generator<string, void, unknown> {
  let walk: ReturnType<typeof nodeStorage.walk>;
  try {
    walk = nodeStorage.walk(dir);
  } catch {
    return;
  }
  try {
    for (let [name] = walk.next(1); name !== undefined; [name] = walk.next(1)) yield name;
  } catch {
    // A later pass sees the rest.
  } finally {
    walk.close();
  }
}

/** False when this user may not remove the file, such as one that a container has left as root. */
export function removeFile(path: string): boolean {
  try {
    fs.rmSync(path, { force: true });
    return true;
  } catch {
    return false;
  }
}
