/** Where this user's state is that all state trees share: `$XDG_STATE_HOME/mailchute`, else `~/.local/state/mailchute`. */
import os from "node:os";
import { join } from "node:path";

/** @param env of the process */
export function userStateDir(env: NodeJS.ProcessEnv): string {
  const stateHome = env["XDG_STATE_HOME"] ?? join(env["HOME"] ?? os.homedir(), ".local", "state");
  return join(stateHome, "mailchute");
}

/** So many directories of a folder in it may be missing: `~/.local/state/mailchute/<folder>`. */
export const USER_STATE_DEPTH = 4;
