/** Finds the supervisor of a state tree, from its file and from the process itself. Reads only. */
import type { ClosedGate, SupervisorDocument } from "../core/documents.ts";
import { isObject } from "../core/json-object.ts";
import { ownsKeyOf } from "../core/owned-paths.ts";
import { supervisorOf } from "../core/saved-documents.ts";
import type { StateTree } from "../core/state-tree.ts";
import { mtimeOfDocument, readDocument } from "../host/documents.ts";
import { thisPlace } from "../host/identity.ts";
import { tryStatOf } from "../host/regular-file.ts";
import { machineMs } from "../host/system-clock.ts";
import { judgeIn, livesElsewhere } from "../host/tree-id.ts";
import type { SupervisorView } from "./snapshot.ts";

/** What to do about a supervisor whose heartbeat is late. Commands would wait for it. */
export const HANG_TODO =
  "kill -CONT its pid if it was stopped; otherwise kill -KILL its pid, then mailchute run: nothing is lost";

/**
 * The supervisor of this tree. The process shows whether it lives, not its file.
 * @param monoMs see `machineMs`
 */
export function readSupervisor(
  tree: StateTree,
  nowMs: number,
  monoMs = machineMs(),
): SupervisorView {
  const document = readDocument(tree.supervisor, supervisorOf);
  if (document === undefined) return { state: "none", document: null, heartbeat_age_ms: null };
  const heartbeatAgeMs = heartbeatAgeOf(
    document,
    nowMs - (mtimeOfDocument(tree.supervisor) ?? nowMs),
    monoMs,
  );
  if (document.status === "stopped")
    return { state: "stopped", document, heartbeat_age_ms: heartbeatAgeMs };
  if (livesElsewhere(document, tree.dir))
    return { state: "none", document: null, heartbeat_age_ms: null };
  const verdict = judgeIn(tree.dir, document);
  const state = verdict === "alive" ? document.status : verdict;
  return { state, document, heartbeat_age_ms: heartbeatAgeMs };
}

/** The smaller of two ages: the wall clock goes on while the machine sleeps, and on a full disk only the mtime changes. */
function heartbeatAgeOf(
  { place, heartbeat_mono_ms: beatMs }: SupervisorDocument,
  wallAgeMs: number,
  monoMs: number,
): number {
  const isComparable = Number.isFinite(beatMs) && place === thisPlace();
  return Math.max(0, Math.min(wallAgeMs, isComparable ? monoMs - (beatMs ?? 0) : wallAgeMs));
}

/** True when a supervisor looks after the tree, as far as can be seen from here. */
export function isAttended(view: SupervisorView): boolean {
  return (
    view.state === "running" ||
    view.state === "draining" ||
    view.state === "stopping" ||
    view.state === "unknown"
  );
}

/** What to do when `isConfigNewer`. */
export const CONFIG_NEWER = {
  what: "config.yaml was saved after the supervisor had started, which goes on with what it read",
  do: "mailchute stop, then mailchute run",
} as const;

/** True when a person has saved `config.yaml` since the supervisor read it: it reads it only at its start. */
export function isConfigNewer(tree: Pick<StateTree, "config">, view: SupervisorView): boolean {
  if (!isAttended(view) || view.document === null) return false;
  const savedMs = tryStatOf(tree.config)?.mtimeMs ?? 0;
  return savedMs > Date.parse(view.document.started_at);
}

/** How many nodes of the plan wait for a person, as the supervisor last reported. */
export function askingCount(view: SupervisorView): number {
  return view.document?.roadmap?.needs_human ?? 0;
}

/** The questions of the first of these nodes, by the node's id; "" for a node that only waits for a person. */
export function nodeQuestions(view: SupervisorView): Map<string, string> {
  const asking = view.document?.plan_holds?.asking ?? [];
  return new Map(asking.map(({ id, question }) => [id, question ?? ""]));
}

/** Why nothing new starts although a supervisor runs; undefined when tasks may start. */
export function intakeStopped(
  view: SupervisorView,
): NonNullable<SupervisorDocument["intake_stopped"]> | undefined {
  return isAttended(view) ? (view.document?.intake_stopped ?? undefined) : undefined;
}

/** Says whether a gate holds this task back because of its group, its limits, or the files that it owns. Its file may be invalid. */
export function gateTest(task: Record<string, unknown>): (gate: ClosedGate) => boolean {
  let key: string | undefined;
  try {
    key = ownsKeyOf(task);
  } catch {
    // The task's `owns` is no list, so the task will be refused.
  }
  const { group: own, limits } = task;
  const ownGroup = typeof own === "string" ? own : "";
  return ({ group, owns, limit, groups = [] }) =>
    (group !== undefined && group === own) ||
    (owns !== undefined && owns === key) ||
    (limit !== undefined &&
      (groups.includes(ownGroup) || (Array.isArray(limits) && limits.includes(limit))));
}

/** Closed gates, as the tree's supervisor reports them: the tasks of some agents wait there together. */
export function closedGates(view: SupervisorView): ClosedGate[] {
  return isAttended(view) ? (view.document?.gates ?? []) : [];
}

/** Why a task that is held at this gate waits. */
export function whyAt({ why, tasks }: ClosedGate, id: string): string {
  const own: unknown = isObject(tasks) && Object.hasOwn(tasks, id) ? tasks[id] : undefined;
  return typeof own === "string" ? own : why;
}
