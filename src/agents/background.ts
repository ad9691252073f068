/**
 * Decides what becomes of processes that left the process group of a run, and so outlived its programs. Those of agents and of runs
 * with limits end; those of a plain `exec` stay, because people start daemons so, and the record counts them.
 */
import { BUILT_IN_EXEC } from "../core/matching.ts";
import { Orphans } from "../host/orphans.ts";
import { endTree, findTree } from "../host/process-tree.ts";
import type { Agent, Assignment } from "./agent.ts";

type Run = Pick<Assignment, "task" | "lease" | "limiter" | "stateDir" | "usage">;

const orphans = new Orphans();

/** Whether what the programs of a run leave behind goes on. */
export function keepsBackground(
  { settings }: Pick<Agent, "settings">,
  { task, limiter }: Pick<Assignment, "task" | "limiter">,
): boolean {
  return task.keep_background ?? (settings === BUILT_IN_EXEC && limiter === undefined);
}

/**
 * Call this when no program of the run is left that mailchute has started. Never rejects.
 * @param known tests put a broken one here
 */
export async function closeBackground(
  agent: Pick<Agent, "settings">,
  run: Run,
  known: Pick<Orphans, "have"> = orphans,
): Promise<void> {
  const { lease, limiter, stateDir, usage } = run;
  const isAnyLeft = known.have(lease);
  if (!keepsBackground(agent, run)) {
    limiter?.endLeft();
    // A look at all processes costs milliseconds.
    if (isAnyLeft !== false) await endTree(lease, 0, undefined, stateDir);
  } else if (isAnyLeft === true) {
    const count = countLeft(lease, stateDir);
    if (count > 0) usage.left_processes = (usage.left_processes ?? 0) + count;
  }
}

/** At least one was seen. */
function countLeft(lease: string, stateDir: string): number {
  try {
    return findTree(lease, undefined, undefined, stateDir).length;
  } catch {
    return 1;
  }
}
