/** Names some of the tasks that do not start, and says why, for people. Looks only. */
import { join } from "node:path";
import type { Backlog } from "../core/backlog.ts";
import type { HeldTask } from "../core/documents.ts";
import { errorName, foldId } from "../core/names.ts";
import type { WaitingTask } from "../core/waiting-task.ts";
import type { Trays } from "../mailbox/trays.ts";
import type { Intake } from "./intake.ts";
import type { PlanEngine } from "./plan/plan-engine.ts";
import type { Selection } from "./selection.ts";

export interface HeldTasksParts {
  trays: Trays;
  backlog: Backlog;
  intake: Intake;
  selection: Selection;
  plan: PlanEngine;
}

/** So many of each state are named. */
const NAMED_MAX = 5;

/** @returns at most five that are blocked, five that no agent fits, and five that cannot be read */
export function findHeldTasks(parts: HeldTasksParts): HeldTask[] {
  const held: HeldTask[] = [];
  for (const state of ["blocked", "unmatched"] as const) {
    let count = 0;
    for (const task of parts.backlog.waitingAs(state)) {
      if (count++ === NAMED_MAX) break;
      held.push({ id: task.id, state, why: explain(task, parts) });
    }
  }
  for (const { name, why } of parts.intake.letBe(NAMED_MAX))
    held.push({ id: name.replace(/\.(?:nd)?json$/, ""), state: "unreadable", why });
  return held;
}

function explain({ unmet, reason }: Readonly<WaitingTask>, parts: HeldTasksParts): string {
  const on = unmet?.[0];
  if (on === undefined) return reason ?? "no agent fits";
  const more = (unmet?.length ?? 0) > 1 ? ` and ${(unmet?.length ?? 0) - 1} more` : "";
  return `waits for ${on}${more}${explainUnmet(on, parts)}`;
}

/** Nothing when it may still complete. */
function explainUnmet(id: string, { trays, backlog, selection, plan }: HeldTasksParts): string {
  const isNode = plan.isDone(id) !== undefined;
  if (isNode || backlog.get(id) !== undefined || selection.inFlight.has(foldId(id))) return "";
  const hasFailed = trays.storage.look(join(trays.failed, errorName(id))) !== undefined;
  return hasFailed ? ", which failed" : ", which is not here";
}
