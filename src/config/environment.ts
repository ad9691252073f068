/** The environment variables that name a mailbox. This file imports little, so that commands that only read start fast. */
import { resolve } from "node:path";

/** The prefix of mailchute's own variables. */
export const ENV_PREFIX = "MAILCHUTE_";
const MAILBOX_DIR_NAMES = ["MAILCHUTE_MAILBOX_DIR", "DROVER_MAILBOX_DIR"] as const;

/** The absolute path of the task mailbox, when the environment puts it outside the state tree. */
export function mailboxDirFrom(env: NodeJS.ProcessEnv, cwd?: string): string | undefined {
  for (const name of MAILBOX_DIR_NAMES) {
    const value = env[name];
    if (value !== undefined && value !== "") return resolve(cwd ?? "", value);
  }
  return undefined;
}
