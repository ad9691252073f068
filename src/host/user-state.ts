/** The directory for state that all state trees of this user share: `$XDG_STATE_HOME/mailchute`, else `~/.local/state/mailchute`. */
import os from "node:os";
import { join } from "node:path";

export function userStateDir(env: NodeJS.ProcessEnv): string {
  const stateHome = env["XDG_STATE_HOME"] ?? join(env["HOME"] ?? os.homedir(), ".local", "state");
  return join(stateHome, "mailchute");
}

/** How many directories of such a folder may be missing: `~/.local/state/mailchute/<folder>`. */
export const USER_STATE_DEPTH = 4;
