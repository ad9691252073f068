/** Names some of the tasks that do not start, and says why, for people. Looks only. */
import { join } from "node:path";
import type { Backlog } from "../../core/backlog.ts";
import type { HeldTask } from "../../core/documents.ts";
import { errorName, foldId, inboxName, resultName } from "../../core/names.ts";
import { describeUnmet, findUnmet, type Standing, UNKNOWN } from "../../core/unmet.ts";
import { isRefusal } from "../../mailbox/settled-record.ts";
import type { Trays } from "../../mailbox/trays.ts";
import type { PlanEngine } from "../../parts/plan/engine/engine.ts";
import type { InboxScanner } from "../inbox/scanner.ts";
import type { Dispatcher } from "../queue/dispatcher.ts";
import type { FinishedIds } from "../queue/finished-ids.ts";

export interface BlockedTasksParts {
  backlog: Backlog;
  scanner: InboxScanner;
  dispatcher: Dispatcher;
  finishedIds: FinishedIds;
  plan: PlanEngine;
}

/** So many of each state are named. */
const NAMED_MAX = 5;

/** @returns at most five that are blocked, five that no agent fits, and five that cannot be read */
export function findBlockedTasks(trays: Trays, parts: BlockedTasksParts): HeldTask[] {
  const held: HeldTask[] = [];
  for (const state of ["blocked", "unmatched"] as const) {
    let count = 0;
    for (const { id, reason } of parts.backlog.waitingAs(state)) {
      if (count++ === NAMED_MAX) break;
      if (state === "blocked") held.push(explainBlocked(id, trays, parts));
      else held.push({ id, state, why: reason ?? "no agent fits" });
    }
  }
  for (const { name, why } of parts.scanner.letBe(NAMED_MAX))
    held.push({ id: name.replace(/\.(?:nd)?json$/, ""), state: "unreadable", why });
  return held;
}

function explainBlocked(id: string, trays: Trays, parts: BlockedTasksParts): HeldTask {
  const unmet = parts.backlog.unmetOf(id);
  const { named, count } = findUnmet(id, unmet, (one) => standingOf(one, trays, parts));
  const on = named.map(({ id: one, how, isUnknown }) => ({
    id: one,
    how,
    ...(isUnknown ? { is_unknown: true } : {}),
    ...(parts.plan.isDone(one) === undefined ? {} : { is_node: true }),
  }));
  // What has completed this instant is counted in the next.
  const why = count === 0 ? "is about to start" : describeUnmet(on, count);
  return { id, state: "blocked", why, on, on_count: count };
}

function standingOf(id: string, trays: Trays, parts: BlockedTasksParts): Standing {
  const { backlog, dispatcher, plan } = parts;
  const node = plan.standing(id);
  if (node !== undefined) return node;
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
  if (dispatcher.inFlight.has(foldId(id))) return { is: "moving", how: "runs" };
  return settledStanding(id, trays, parts);
}

function settledStanding(
  id: string,
  trays: Trays,
  { finishedIds, scanner }: BlockedTasksParts,
): Standing {
  const { storage } = trays;
  const isThere = (dir: string, name: string): boolean =>
    storage.look(join(dir, name)) !== undefined;
  if (isThere(trays.outbox, resultName(id)) || finishedIds.hasResult(id))
    return { is: "met", how: "has completed" };
  if (isThere(trays.failed, errorName(id))) {
    const isRefused = isRefusal(trays, join(trays.failed, errorName(id)));
    return { is: "stuck", how: isRefused ? "was refused" : "failed" };
  }
  if (finishedIds.has(id) === true) return { is: "stuck", how: "failed" };
  const isWaiting = [inboxName({ id }), inboxName({ id, isBatch: true })].some((name) =>
    isThere(trays.inbox, name),
  );
  if (isWaiting || !scanner.isComplete) return { is: "moving", how: "waits its turn" };
  return UNKNOWN;
}
