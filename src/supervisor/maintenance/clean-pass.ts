/** A sweep that is done in pieces: its generator gives way after each name that it looked at. */
import fs from "node:fs";
import { nodeStorage } from "../../mailbox/node-storage.ts";

/** Returns how many were removed (or would be). */
export type CleanPass = Generator<undefined, number, unknown>;

/** What a pass works by. */
export interface CleanRules {
  /** As the file system stamps files (`Sweep.nowMs`): our own clock may differ from it. */
  nowMs: number;
  isDryRun?: boolean;
}

/** A whole pass at once. @returns what it returns */
export function finishPass(pass: CleanPass): number {
  for (;;) {
    const { done, value } = pass.next();
    if (done === true) return value;
  }
}

/** The names in a directory, in pieces; none when it cannot be listed: what is there does not show, and stays. */
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

/** False when this user may not remove it, as with files that a container has left as root. */
export function removeFile(path: string): boolean {
  try {
    fs.rmSync(path, { force: true });
    return true;
  } catch {
    return false;
  }
}
