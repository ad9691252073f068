/** The tasks that wait and do not start: the supervisor's report, corrected by the trays as they are now. Reads only. */
import { join } from "node:path";
import type { HeldOn, HeldTask, WaitingCounts } from "../core/documents.ts";
import { resultName } from "../core/names.ts";
import type { StateTree } from "../core/state-tree.ts";
import { suggest } from "../core/suggest.ts";
import { describeUnmet } from "../core/unmet.ts";
import { findWaiting } from "../mailbox/find/locate.ts";
import { idsIn, isThere, lookForRecord, processingPlaces, traysOf } from "./find-task.ts";

/** How many ids of each tray are compared with an unknown one. */
const COMPARED_MAX = 2000;

/** @param inboxCount how many tasks wait in the inbox: no reported count may be higher */
export function liveWaiting(
  tree: StateTree,
  waiting: WaitingCounts,
  inboxCount: number,
): WaitingCounts {
  const gone = { blocked: 0, unmatched: 0, unreadable: 0, closed: 0 };
  const told = waiting.held ?? [];
  const held = liveHeld(tree, told);
  for (const { state } of told) gone[state]++;
  for (const { state } of held) gone[state]--;
  const left = (count: number, less = 0): number => Math.min(Math.max(0, count - less), inboxCount);
  return {
    ...waiting,
    blocked: left(waiting.blocked, gone.blocked),
    unmatched: Math.max(0, waiting.unmatched - gone.unmatched),
    unsettled: left(waiting.unsettled),
    unreadable: left(waiting.unreadable ?? 0, gone.unreadable),
    held,
  };
}

/** The tasks that are still held. */
export function liveHeld(tree: StateTree, held: readonly HeldTask[]): HeldTask[] {
  return held.map((one) => lookAgain(tree, one)).filter((one) => one !== undefined);
}

/** Undefined when the task is not held any more. */
function lookAgain(tree: StateTree, one: HeldTask): HeldTask | undefined {
  const waits = findWaiting(traysOf(tree), one.id) !== undefined;
  // The task may have been accepted before the settings were changed.
  const mayBeAccepted = one.state === "unmatched" || one.state === "closed";
  const isAccepted = !waits && mayBeAccepted && isInProcessing(tree, one.id);
  if (!waits && !isAccepted) return undefined;
  if (one.state !== "blocked" || one.on === undefined) return one;
  const outbox = join(tree.mailbox, "outbox");
  const on = one.on.filter(
    ({ id, is_node: isNode }) => isNode === true || !isThere(join(outbox, resultName(id))),
  );
  const count = (one.on_count ?? one.on.length) - (one.on.length - on.length);
  if (count <= 0) return undefined;
  return { ...one, on, on_count: count, why: describeUnmet(withNames(tree, one.id, on), count) };
}

function isInProcessing(tree: StateTree, id: string): boolean {
  return lookForRecord(tree, id) === undefined && processingPlaces(tree).some((p) => p.id === id);
}

/** Adds a similar id to each unknown one, which may be a typing error. @param id the task that waits */
function withNames(tree: StateTree, id: string, on: readonly HeldOn[]): HeldOn[] {
  return on.map((one) => {
    const near = one.is_unknown === true ? nearestId(tree, one.id, [], id) : undefined;
    return near === undefined ? one : { ...one, how: `${one.how} (did you mean ${near}?)` };
  });
}

/** Shorter ids are all similar to each other. */
const COMPARED_CHARS_MIN = 3;

/** The most similar id in the trays, if any is similar. @param more ids from elsewhere @param except an id that is never named */
export function nearestId(
  tree: StateTree,
  id: string,
  more: Iterable<string> = [],
  except = id,
): string | undefined {
  if (id.length < COMPARED_CHARS_MIN) return undefined;
  const trays = ["outbox", "failed", "inbox"] as const;
  const ids = new Set([...more, ...trays.flatMap((tray) => idsIn(tree, tray, COMPARED_MAX))]);
  for (const place of processingPlaces(tree)) ids.add(place.id);
  ids.delete(id);
  ids.delete(except);
  return suggest(id, ids);
}
