/** How far the landing of a completed task is. Reads only. */
import { landingIdOf } from "../core/landing.ts";
import { headlineOf } from "../core/outcome.ts";
import { landingFileOf, type StateTree } from "../core/state-tree.ts";
import type { Standing } from "../core/unmet.ts";
import { isThere, lookForTask } from "./find-task.ts";
import { readJsonObject, textOf } from "./scan.ts";

export interface LandingView {
  /** The task that lands the work. */
  id: string;
  state: "open" | "landed" | "failed";
  /** What it waits for, why it could not land, or where the work is. */
  why: string;
}

/** For those that wait for the task: undefined when its work has landed, or has no landing. */
export function explainUnlanded(tree: StateTree, id: string): Standing | undefined {
  const { state, why } = lookForLanding(tree, id) ?? {};
  if (state === "failed") return { is: "stuck", how: `did not land: ${why}` };
  return state === "open" ? { is: "moving", how: `has not landed: ${why}` } : undefined;
}

/** Undefined when the task has no landing. @param record of the task; read when it is left out */
export function lookForLanding(
  tree: StateTree,
  id: string,
  record?: Readonly<Record<string, unknown>>,
): LandingView | undefined {
  // One look for a task without work to land.
  if (!isThere(landingFileOf(tree.dir, id, "order"))) return undefined;
  const of = record ?? readJsonObject(lookForTask(tree, id)?.path ?? "");
  const landing = landingIdOf(id);
  const place = lookForTask(tree, landing);
  const sent = readJsonObject(landingFileOf(tree.dir, id, "sent"));
  const isSent = sent !== undefined && sent["lease"] === of?.["lease"];
  // A branch lands only when a person asks for it.
  if (of?.["landing"] !== "pending" && !isSent) return undefined;
  if (!isSent) return { id: landing, state: "open", why: "it is about to be submitted" };
  const end = place === undefined ? undefined : readJsonObject(place.path);
  if (place?.state === "failed")
    return { id: landing, state: "failed", why: headlineOf(textOf(end?.["error"], "")) };
  if (place !== undefined && place.state !== "done") {
    const { wait } = stateOf(tree, id);
    const why = (wait as { why?: unknown } | null | undefined)?.why;
    return { id: landing, state: "open", why: typeof why === "string" ? why : place.state };
  }
  if (place === undefined && stateOf(tree, id)["landed"] !== true)
    return { id: landing, state: "failed", why: `its record was removed; mailchute land ${id}` };
  return { id: landing, state: "landed", why: textOf(end?.["verdict_reason"], "") };
}

function stateOf(tree: StateTree, id: string): Record<string, unknown> {
  return readJsonObject(landingFileOf(tree.dir, id, "state")) ?? {};
}
