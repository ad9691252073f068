/** The directory for state that all state trees of this user share: `$XDG_STATE_HOME/mailchute`, else `~/.local/state/mailchute`. */
import os from "node:os";
import { isAbsolute, join } from "node:path";
import { ErrIo } from "../core/errors.ts";

/** @throws ErrIo when this user has no home directory */
export function userStateDir(env: NodeJS.ProcessEnv): string {
  const named = env["XDG_STATE_HOME"] ?? "";
  // The standard (XDG) says that a relative path must be ignored. It would lead to a place where runs can write.
  if (isAbsolute(named)) return join(named, "mailchute");
  const home = findHome(env);
  if (home === undefined)
    throw new ErrIo(
      `there is no folder for the state of this user: HOME is not set, and the system knows no home directory of the user ${process.getuid?.()}`,
      { hint: "set HOME or XDG_STATE_HOME to a folder of this user" },
    );
  return join(home, ".local", "state", "mailchute");
}

/** The home directory, as the system knows it when `HOME` does not name one. */
export function findHome(env: NodeJS.ProcessEnv): string | undefined {
  const named = env["HOME"] ?? "";
  if (isAbsolute(named)) return named;
  try {
    return os.userInfo().homedir;
  } catch {
    // A container may run as a user without a name.
    return undefined;
  }
}

/** How many directories of such a folder may be missing: `~/.local/state/mailchute/<folder>`. */
export const USER_STATE_DEPTH = 4;
