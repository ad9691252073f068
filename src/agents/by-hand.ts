/** How a person goes on in the session of a coding agent, on the program's own screen. */
import fs from "node:fs";
import { withoutMeter } from "../core/meter-address.ts";
import type { AgentSettings, Settings } from "../core/settings.ts";
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

/** The command line of the program's own screen; undefined when neither the agent nor its kind says what it is. */
export function screenOf(
  agent: AgentSettings,
  kind: CodingKind | undefined,
  sessionId: string,
): string[] | undefined {
  const own = agent.screen?.map((word) => word.replaceAll("{session}", sessionId));
  return own ?? kind?.byHand?.argv(agent, sessionId);
}

/** Undefined when there is no session, its folder or its agent is gone, or the program has no such screen. */
export function byHandIn(
  session: SessionDocument,
  kind: CodingKind | undefined,
  { accounts, agents }: Settings,
): ByHand | undefined {
  const named = agents.find(({ name }) => name === session.agent);
  if (session.session_id === null || named === undefined) return undefined;
  if (!fs.existsSync(session.cwd)) return undefined;
  const agent = withoutMeter(withAccount(named, session.account, accounts));
  const [program, ...args] = screenOf(agent, kind, session.session_id) ?? [];
  if (program === undefined) return undefined;
  const { env = {} } = agent;
  const name = kind?.byHand?.homeVariable ?? "";
  const home = env[name];
  return {
    cwd: session.cwd,
    program,
    args,
    env,
    home: home === undefined ? undefined : [name, home],
  };
}
