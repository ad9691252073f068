/** The accounts of an agent, and what each of them changes about its settings. Pure. */
import { type AgentSettings, isFunction, isMetered, type Settings } from "../../core/settings.ts";

/** The accounts whose quota the runs of this agent use, the best first; empty for an agent without accounts. */
export function accountsOf(agent: AgentSettings): readonly string[] {
  if ((agent.kind === "exec" && !isMetered(agent)) || isFunction(agent)) return [];
  return (
    agent.accounts ?? [agent.account ?? (agent.kind === "exec" ? ownAccount(agent) : "default")]
  );
}

/** A program of the user has a service of its own, so it does not share the quota of the coding agents. */
function ownAccount({ name }: AgentSettings): string {
  const plain = name
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, "-")
    .replace(/^-+/, "");
  return plain.slice(0, ACCOUNT_CHARS_MAX) || "exec";
}

/** See the schema of the settings. */
const ACCOUNT_CHARS_MAX = 32;

/** The settings of an agent for a run with this account. */
export function withAccount(
  agent: AgentSettings,
  account: string,
  all: Settings["accounts"],
): AgentSettings {
  const env = Object.hasOwn(all, account) ? all[account]?.env : undefined;
  return env === undefined ? agent : { ...agent, env: { ...agent.env, ...env } };
}

/** How much of each window is left to the owner of this account (percent). */
export function reserveOf(account: string, all: Settings["accounts"]): number {
  return Object.hasOwn(all, account) ? (all[account]?.reserve_pct ?? 0) : 0;
}
