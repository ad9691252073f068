/** The environment variables that name a mailbox. Light on purpose: commands that only look load nothing more. */
import { resolve } from "node:path";

/** The prefix of our own variables. */
export const ENV_PREFIX = "MAILCHUTE_";
const MAILBOX_DIR_NAMES = ["MAILCHUTE_MAILBOX_DIR", "DROVER_MAILBOX_DIR"] as const;

/** Where the task mailbox lies when the environment moves it out of the state tree; absolute. */
export function mailboxDirFrom(env: NodeJS.ProcessEnv, cwd?: string): string | undefined {
  for (const name of MAILBOX_DIR_NAMES) {
    const value = env[name];
    if (value !== undefined && value !== "") return resolve(cwd ?? "", value);
  }
  return undefined;
}
