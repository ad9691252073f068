/** The accounts of an agent, and what each of them changes about its settings. Pure. */
import { type AgentSettings, isFunction, isMetered, type Settings } from "../../core/settings.ts";

/** The accounts whose quota the runs of this agent use, the best first; empty for an agent without accounts. */
export function accountsOf(agent: AgentSettings): readonly string[] {
  if ((agent.kind === "exec" && !isMetered(agent)) || isFunction(agent)) return [];
  return agent.accounts ?? [agent.account ?? "default"];
}

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
