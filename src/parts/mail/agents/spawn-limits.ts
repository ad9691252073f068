/** Limits how many agents may be spawned in a scope. So an agent that spawns without end is stopped. Pure. */
import type { Settings } from "../../../core/settings.ts";
import type { AgentRecord } from "./agents.ts";

const HOUR_S = 60 * 60;

/** The depth of an agent that `by` spawns: 1 when `by` is a person, or was not spawned itself. */
export function nextDepth(by: Pick<AgentRecord, "spawned"> | undefined): number {
  return (by?.spawned?.depth ?? 0) + 1;
}

/**
 * Why no agent may be spawned now, and what to do. Undefined when one may be spawned.
 * @param agents all agents of the scope, also the archived ones
 * @param nowS unix seconds
 */
export function explainSpawnLimit(
  agents: readonly Pick<AgentRecord, "spawned" | "archived_at" | "created_at">[],
  depth: number,
  limits: Settings["spawn"],
  nowS: number,
): { fault: string; hint: string } | undefined {
  const { agents_max: agentsMax, depth_max: depthMax, per_hour_max: perHourMax } = limits;
  if (depth > depthMax)
    return {
      fault: `it would be agent ${depth} in a chain of spawned agents, and spawn.depth_max is ${depthMax}`,
      hint: "do the work yourself, or ask an existing agent: mailchute agents",
    };
  const spawned = agents.filter((one) => one.spawned !== null);
  const alive = spawned.filter((one) => one.archived_at === null).length;
  if (alive >= agentsMax)
    return {
      fault: `${alive} spawned agents are there, and spawn.agents_max is ${agentsMax}`,
      hint: "a person may archive those that are done: mailchute archive NAME. One that is idle for spawn.archive_ms goes by itself",
    };
  // An agent with a time in the future counts, too: the clock was set back.
  const recent = spawned.filter((one) => nowS - one.created_at < HOUR_S).length;
  if (recent >= perHourMax)
    return {
      fault: `${recent} agents were spawned within an hour, and spawn.per_hour_max is ${perHourMax}`,
      hint: "wait, or write to an existing agent: mailchute agents",
    };
  return undefined;
}
