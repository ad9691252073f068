/** Finds the supervisor of a state tree, from its file and from the process itself. Reads only. */

import type { ClosedGate, SupervisorDocument } from "../core/documents.ts";
import { gateAt, isAttendedIn, type PoolState } from "../core/gates.ts";
import { isObject } from "../core/json-object.ts";
import { type ControlDocument, controlOf, supervisorOf } from "../core/saved-documents.ts";
import type { AgentSettings } from "../core/settings.ts";
import type { StateTree } from "../core/state-tree.ts";
import { type LaneFields, laneOf, readLane } from "../core/waiting-task.ts";
import { mtimeOfDocument, readDocument } from "../host/documents.ts";
import { thisPlace } from "../host/identity.ts";
import { tryStatOf } from "../host/regular-file.ts";
import { machineMs } from "../host/system-clock.ts";
import { judgeIn, livesElsewhere } from "../host/tree-id.ts";
import type { SupervisorView } from "./snapshot.ts";

/** What to do about a supervisor whose heartbeat is late. Commands would wait for it. */
export const HANG_TODO =
  "kill -CONT its pid if it was stopped; otherwise kill -KILL its pid, then mailchute run: nothing is lost";

export const NO_SUPERVISOR: SupervisorView = {
  state: "none",
  document: null,
  heartbeat_age_ms: null,
};

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
  if (document === undefined) return NO_SUPERVISOR;
  const heartbeatAgeMs = heartbeatAgeOf(
    document,
    nowMs - (mtimeOfDocument(tree.supervisor) ?? nowMs),
    monoMs,
  );
  if (document.status === "stopped")
    return { state: "stopped", document, heartbeat_age_ms: heartbeatAgeMs };
  if (livesElsewhere(document, tree.dir)) return NO_SUPERVISOR;
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
  return isAttendedIn(view.state);
}

/** The agents that this pool has besides those of the settings: functions of the program that runs it. */
export function handlersOf(view: SupervisorView): AgentSettings[] {
  const names = isAttended(view) ? (view.document?.handlers ?? []) : [];
  return names.map((name) => ({ name, kind: "module" }));
}

/** What the gates of the pool are asked about, as the files say. @param nowMs epoch ms */
export function poolOf(
  view: SupervisorView,
  nowMs: number,
  control: ControlDocument = controlOf(undefined),
): PoolState {
  const { document } = view;
  const startedMs = Date.parse(document?.started_at ?? "");
  return {
    supervisor: view.state,
    pid: document?.pid,
    control,
    slots: control.max_workers,
    shortage: intakeStopped(view),
    isMailboxOn: document?.mailbox_enabled !== false,
    isRead: document?.waiting?.is_complete !== false,
    upMs: Number.isFinite(startedMs) ? nowMs - startedMs : Number.POSITIVE_INFINITY,
    replan: document?.replans === true ? [] : undefined,
  };
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

let ownGates = (): ClosedGate[] => [];

/** Called when a command begins: gates that it asks itself while no supervisor does, such as those of plugins. */
export function askOwnGates(ask: () => ClosedGate[]): void {
  ownGates = ask;
}

/** Closed gates, as the tree's supervisor reports them: the tasks of some agents wait there together. */
export function closedGates(view: SupervisorView): ClosedGate[] {
  return isAttended(view) ? (view.document?.gates ?? []) : ownGates();
}

/** The first of these gates that holds this task back, with the reason why this task waits there. */
export function gateOf(
  gates: readonly ClosedGate[],
  task: LaneFields & { id: string },
): ClosedGate | undefined {
  const lane = readLane(laneOf(task));
  const gate = gateAt(gates, lane, Date.now());
  return gate && { ...gate, why: whyAt(gate, task.id) };
}

/** Why a task that is held at this gate waits. */
export function whyAt({ why, tasks }: ClosedGate, id: string): string {
  const own: unknown = isObject(tasks) && Object.hasOwn(tasks, id) ? tasks[id] : undefined;
  return typeof own === "string" ? own : why;
}
