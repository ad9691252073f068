/** Where the mailbox for messages of any program is. On its own, so that a command without such messages loads nothing more. */
import fs from "node:fs";
import { join } from "node:path";

/** Whether a file waits there, or was left there by a process that died. */
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
