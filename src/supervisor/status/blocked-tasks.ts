/** Names some of the tasks that do not start, and the reasons, for people. Changes nothing. */
import { join } from "node:path";
import type { HeldTask } from "../../core/documents.ts";
import { errorName, resultName } from "../../core/names.ts";
import { type DependencyState, describeUnmet, findUnmet, UNKNOWN } from "../../core/unmet.ts";
import type { Trays } from "../../mailbox/files/trays.ts";
import { duplicateOf } from "../../mailbox/find/failures.ts";
import { findWaiting } from "../../mailbox/find/locate.ts";
import { isRefusal } from "../../mailbox/find/settled-record.ts";
import type { Parts } from "../environment/parts.ts";
import type { Queue } from "../queue/queue.ts";

export interface BlockedTasksParts {
  queue: Queue;
  parts: Parts;
}

/** How many tasks of each state are named. */
const NAMED_MAX = 5;

/** @returns at most five tasks that are blocked, five that no agent fits, and five that cannot be read */
export function findBlockedTasks(trays: Trays, from: BlockedTasksParts): HeldTask[] {
  const held: HeldTask[] = [];
  // All tasks of a chain wait for the same tasks in the end, so each id is looked at once.
  const known = new Map<string, DependencyState>();
  const look = (id: string): DependencyState => {
    const standing = known.get(id) ?? standingOf(id, trays, from);
    known.set(id, standing);
    return standing;
  };
  for (const state of ["blocked", "unmatched"] as const) {
    let count = 0;
    for (const { id, reason } of from.queue.backlog.waitingAs(state)) {
      if (count++ === NAMED_MAX) break;
      if (state === "blocked") held.push(explainBlocked(id, look, from));
      else held.push({ id, state, why: reason ?? "no agent fits" });
    }
  }
  for (const { name, why } of from.queue.scanner.letBe(NAMED_MAX))
    held.push({ id: name.replace(/\.(?:nd)?json$/, ""), state: "unreadable", why });
  return held;
}

function explainBlocked(
  id: string,
  look: (id: string) => DependencyState,
  from: BlockedTasksParts,
): HeldTask {
  const unmet = from.queue.backlog.unmetOf(id);
  const { named, count } = findUnmet(id, unmet, look);
  const on = named.map(({ id: one, how, isUnknown }) => ({
    id: one,
    how,
    ...(isUnknown ? { is_unknown: true } : {}),
    ...(from.parts.isDone(one) === undefined ? {} : { is_node: true }),
  }));
  // All its dependencies have completed just now: the next look counts them.
  const why = count === 0 ? "is about to start" : describeUnmet(on, count);
  return { id, state: "blocked", why, on, on_count: count };
}

function standingOf(
  id: string,
  trays: Trays,
  { queue, parts }: BlockedTasksParts,
): DependencyState {
  const { accepted, backlog } = queue;
  const known = parts.standing(id);
  if (known !== undefined) return known;
  switch (backlog.stateOfId(id)) {
    case "blocked":
      return { is: "moving", how: "waits its turn", on: backlog.unmetOf(id) };
    case "unmatched":
      return { is: "stuck", how: `cannot run: ${backlog.get(id)?.reason ?? "no agent fits"}` };
    case "delayed":
      return { is: "moving", how: "waits for its time" };
    case "runnable":
      return { is: "moving", how: "waits its turn" };
    default:
  }
  if (accepted.has(id)) return { is: "moving", how: "runs" };
  return settledStanding(id, trays, queue);
}

function settledStanding(
  id: string,
  trays: Trays,
  { finishedIds, scanner }: Queue,
): DependencyState {
  const { storage } = trays;
  const isThere = (dir: string, name: string): boolean =>
    storage.look(join(dir, name)) !== undefined;
  if (isThere(trays.outbox, resultName(id)) || finishedIds.hasResult(id))
    return { is: "met", how: "has completed" };
  if (isThere(trays.failed, errorName(id))) {
    const of = duplicateOf(trays, id);
    if (of !== undefined) return { is: "moving", how: "was not run", on: [of] };
    const isRefused = isRefusal(trays, join(trays.failed, errorName(id)));
    return { is: "stuck", how: isRefused ? "was refused" : "failed" };
  }
  if (finishedIds.has(id) === true) return { is: "stuck", how: "failed" };
  if (findWaiting(trays, id) !== undefined || !scanner.isComplete)
    return { is: "moving", how: "waits its turn" };
  return UNKNOWN;
}
