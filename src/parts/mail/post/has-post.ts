/** Knows where the mailbox for messages of any program is. A separate file, so that a command without such messages loads no more code. */
import fs from "node:fs";
import { join } from "node:path";

/** True if a file waits there, or a process that died left one there. */
export function hasPost(stateDir: string): boolean {
  return ["inbox", "processing"].some((tray) => {
    try {
      return fs.readdirSync(join(postOf(stateDir), tray)).length > 0;
    } catch {
      return false;
    }
  });
}

export function postOf(stateDir: string): string {
  return join(stateDir, "post");
}
