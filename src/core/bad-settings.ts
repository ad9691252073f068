/** Explains settings that are wrong, or do not fit each other. Pure. */
import { WORKERS_MAX } from "./limits.ts";
import { explainBadNames } from "./matching.ts";
import { explainBadMeter } from "./meter-address.ts";
import { explainBadNotify } from "./notify-settings.ts";
import { explainBadRunLimits } from "./run-limits.ts";
import { wallsOf } from "./sandbox.ts";
import { AGENT_KINDS, type AgentSettings, isCoding, isMetered, type Settings } from "./settings.ts";
import { explainBadCache } from "./setup-cache.ts";
import { explainBadLimits } from "./task-limits.ts";

/** A thread of a busy machine may get no processor for about this long (ms). */
const STALL_MS_MIN = 1000;

/** Checks settings that must fit each other. @returns the fault, or undefined */
export function explainBadSettings(s: Settings): string | undefined {
  if (s.heartbeat_ms * 2 > s.lease_ttl_ms)
    return "lease_ttl_ms must be at least twice heartbeat_ms, or live tasks would be taken for dead";
  if (s.stall_ms > 0 && s.stall_ms < STALL_MS_MIN)
    return `stall_ms must be 0 or at least ${STALL_MS_MIN}, or busy workers would be taken for hanging ones`;
  if (s.retry.backoff_ms > s.retry.backoff_max_ms)
    return "retry.backoff_ms must not be above retry.backoff_max_ms";
  for (const unit of ["usd", "tokens", "turns", "time_ms"] as const) {
    const hard = s.budgets[`day_hard_${unit}`];
    if (hard > 0 && s.budgets[`day_${unit}`] > hard)
      return `budgets.day_${unit} must not be above budgets.day_hard_${unit}`;
  }
  if (s.workers > WORKERS_MAX) return `workers must not be above ${WORKERS_MAX}`;
  const names = new Set<string>();
  for (const agent of s.agents) {
    if (names.has(agent.name))
      return `agents: the name ${JSON.stringify(agent.name)} is used twice`;
    names.add(agent.name);
    const fault = explainBadAgent(agent, s.plugins.length > 0);
    if (fault !== undefined) return `agents: ${fault}`;
  }
  for (const { name, review_by: reviewer } of s.agents) {
    if (reviewer === undefined) continue;
    if (reviewer === name) return `agents: ${name} has itself in review_by: name another agent`;
    if (!names.has(reviewer))
      return `agents: review_by of ${name} names ${JSON.stringify(reviewer)}, which is no agent here`;
  }
  const badFallback = explainBadFallback(s.agents);
  if (badFallback !== undefined) return `agents: ${badFallback}`;
  for (const agent of s.agents)
    if (isMetered(agent) && (wallsOf(agent, s)?.network ?? "open") !== "open")
      return `agents: ${agent.name} has a meter, which its sandbox cannot reach: give it network: open, or no meter`;
  const badRunLimits = explainBadRunLimits(s.run_limits);
  if (badRunLimits !== undefined) return `run_limits.${badRunLimits}`;
  const badLimits = explainBadLimits(s);
  if (badLimits !== undefined) return badLimits;
  const fault = explainBadNotify(s.notify);
  return fault === undefined ? undefined : `notify: ${fault}`;
}

function explainBadFallback(agents: readonly AgentSettings[]): string | undefined {
  for (const { name, fallback = [], review_by: reviewer } of agents) {
    const fault = explainBadNames([name, ...fallback], agents);
    if (fault !== undefined) return `fallback of ${name}: ${fault}`;
    if (reviewer !== undefined && fallback.includes(reviewer))
      return `review_by of ${name} names ${reviewer}, which may do the work itself, as a fallback: name another agent`;
  }
  return undefined;
}

/** The settings that a remote agent may have. The agent on the other machine decides everything else. */
const OF_REMOTE: ReadonlySet<string> = new Set<keyof AgentSettings>([
  "name",
  "kind",
  "types",
  "capabilities",
  "default",
  "slots",
  "where",
  "as",
]);

/** Checks that an agent has the settings that its kind needs. @param hasPlugins they may bring other kinds. @returns the fault, or undefined */
export function explainBadAgent(agent: AgentSettings, hasPlugins: boolean): string | undefined {
  const {
    name,
    kind,
    program,
    command,
    module,
    account,
    accounts,
    mode,
    run_limits: limits,
  } = agent;
  const isBuiltIn = AGENT_KINDS.some((one) => one === kind);
  if (!isBuiltIn && !hasPlugins)
    return `${name} is of kind ${kind}: expected ${AGENT_KINDS.join(" or ")}; another kind needs its plugin in plugins`;
  if (isBuiltIn && agent.settings !== undefined)
    return `${name} is of kind ${kind}, and only the kind of a plugin has settings: remove them`;
  const strange = kind === "remote" ? Object.keys(agent).find((key) => !OF_REMOTE.has(key)) : "";
  if (strange !== undefined && strange !== "")
    return `${name} is of kind remote: ${strange} belongs to the agent at the machine, so remove it here`;
  if (kind !== "remote" && (agent.where !== undefined || agent.as !== undefined))
    return `${name} is of kind ${kind}, and only kind remote has where and as: remove them`;
  if (kind === "exec" && program === undefined)
    return `${name} is of kind exec and needs a program`;
  if (kind === "acp" && command === undefined)
    return `${name} is of kind acp and needs a command, such as [opencode, acp]`;
  if (kind === "acp" && (program ?? agent.args) !== undefined)
    return `${name} is of kind acp: write its program and arguments as command: [program, …]`;
  if (kind !== "acp" && (command ?? agent.auth_method ?? agent.trust) !== undefined)
    return `${name} is of kind ${kind}, and only kind acp has command, auth_method and trust: remove them`;
  if (kind === "module" && module === undefined)
    return `${name} is of kind module and needs a module`;
  if (kind === "module" && limits !== undefined)
    return `${name} is of kind module, and run_limits are for programs: a function runs inside a worker process; make it a program of kind exec`;
  const badLimits = limits === undefined ? undefined : explainBadRunLimits(limits);
  if (badLimits !== undefined) return `${name}: run_limits.${badLimits}`;
  const badCache = agent.cache === undefined ? undefined : explainBadCache(agent.cache);
  if (badCache !== undefined) return `${name}: cache.${badCache}`;
  if (account !== undefined && accounts !== undefined)
    return `${name} has both account and accounts: name all of them in accounts`;
  if (agent.effort !== undefined && kind !== "claude" && kind !== "codex")
    return `${name} is of kind ${kind}, and only claude and codex have an effort: remove it`;
  if (agent.mcp !== undefined && !isCoding(agent))
    return `${name} is of kind ${kind}, and only coding agents start the servers of mcp: remove it`;
  if (agent.screen !== undefined && !isCoding(agent))
    return `${name} is of kind ${kind}, and only coding agents have a screen: remove it`;
  const badMeter = explainBadMeter(agent, isCoding(agent) || kind === "exec");
  if (badMeter !== undefined) return badMeter;
  if (agent.screen?.some((word) => word.includes("{session}")) === false)
    return `${name}: no word of its screen has {session}, such as screen: [opencode, --session, "{session}"]`;
  if (mode !== undefined && kind !== "codex")
    return `${name} is of kind ${kind}, and only kind codex has a mode: remove mode, or permissions: {mode: …} was meant`;
  return undefined;
}
