/** Decides which phases of work a node goes through. Pure. */

import type { NodeType } from "./roadmap.ts";

export const PHASES = [
  "STRATEGIZE",
  "SPEC",
  "PLAN",
  "THINK",
  "IMPLEMENT",
  "VERIFY",
  "REVIEW",
  "PR",
  "MONITOR",
] as const;
export type Phase = (typeof PHASES)[number];

/** The phase that is repeated when the work is judged bad. */
const WORK_PHASE: Phase = "IMPLEMENT";
/** Phases that judge the work. When one of them reports a failure, the work is done again, not only judged again. */
const JUDGING: ReadonlySet<string> = new Set<Phase>(["VERIFY", "REVIEW", "MONITOR"]);

const BY_TYPE: Readonly<Partial<Record<NodeType, readonly Phase[]>>> = {
  plan: ["PLAN"],
  verify: ["VERIFY"],
  final_verify: ["VERIFY"],
  integrate: ["IMPLEMENT"],
};

/** The phases of a node. A node with its own program has one phase. An agent's `phases` override those of the node's type. */
export function phasesOf(
  type: NodeType,
  hasProgram: boolean,
  agent: { phases?: readonly Phase[] | undefined },
): readonly Phase[] {
  if (hasProgram) return [WORK_PHASE];
  return agent.phases ?? BY_TYPE[type] ?? PHASES;
}

/**
 * The phase that the next attempt begins with, after the phase `failed` has failed.
 * @param failed undefined when all phases ended well but a verify program failed
 */
export function phaseToRepeat(phases: readonly Phase[], failed: Phase | undefined): Phase {
  if (failed !== undefined && !JUDGING.has(failed)) return failed;
  const at = phases.indexOf(WORK_PHASE);
  const failedAt = failed === undefined ? phases.length : phases.indexOf(failed);
  return (at !== -1 && at < failedAt ? phases[at] : phases[0]) ?? WORK_PHASE;
}
