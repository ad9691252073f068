/** How a person goes on in the session of a coding agent, on the program's own screen. */
import fs from "node:fs";
import type { Settings } from "../core/settings.ts";
import { withAccount } from "./accounts/account-settings.ts";
import type { CodingKind } from "./coding-kind.ts";
import type { SessionDocument } from "./stream/session-file.ts";

export interface ByHand {
  cwd: string;
  program: string;
  args: string[];
  /** What its agent and its account add to the environment. */
  env: Readonly<Record<string, string>>;
  /** The one of these variables that leads to the login and the session; undefined: it is where the program looks anyway. */
  home: readonly [name: string, path: string] | undefined;
}

/** Undefined when there is no session, its folder or its agent is gone, or the program has no such screen. */
export function byHandIn(
  session: SessionDocument,
  kind: CodingKind | undefined,
  { accounts, agents }: Settings,
): ByHand | undefined {
  const agent = agents.find(({ name }) => name === session.agent);
  if (session.session_id === null || !fs.existsSync(session.cwd)) return undefined;
  if (kind?.byHand === undefined || agent === undefined) return undefined;
  const { env = {}, program = session.kind } = withAccount(agent, session.account, accounts);
  const name = kind.byHand.homeVariable;
  const path = env[name];
  const args = kind.byHand.args(session.session_id);
  return {
    cwd: session.cwd,
    program,
    args,
    env,
    home: path === undefined ? undefined : [name, path],
  };
}
