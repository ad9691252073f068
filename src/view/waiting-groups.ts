/** Groups waiting tasks by the reason why they wait. Pure. */

import type { ClosedGate, HeldTask } from "../core/documents.ts";
import { closedPool, gateAt } from "../core/gates.ts";
import { isLandingGate } from "../core/landing.ts";
import { ago, countText } from "../text/render.ts";
import type { AcceptedTask, Facts, Overview, WaitingGroup, WaitingTask } from "./overview.ts";
import type { Snapshot, SupervisorView } from "./snapshot.ts";
import { closedGates, isAttended, poolOf } from "./supervisor.ts";

/** What tasks wait for: texts that follow their number, and what a person can do. */
export const WAITS = {
  unreadable: {
    one: "cannot be read",
    many: "cannot be read",
    do: "check the disk, and the owner and rights of the files in the inbox; they are tried again by themselves",
  },
  unmatched: {
    one: "fits no configured agent",
    many: "fit no configured agent",
    do: "configure an agent in config.yaml, see mailchute config",
  },
  closed: {
    one: "belongs to a group or an agent with 0 slots",
    many: "belong to a group or an agent with 0 slots",
    do: "set its slots in config.yaml",
  },
  blocked: {
    one: "waits for others that it depends on",
    many: "wait for others that they depend on",
    do: "mailchute show ID names them all",
  },
  delayed: {
    one: "waits for its time (not_before, backoff)",
    many: "wait for their time (not_before, backoff)",
    do: "wait, or mailchute ls --state-is waiting",
  },
  unsettled: {
    one: "is still being written, or does not parse",
    many: "are still being written, or do not parse",
    do: "they are refused with a reason when they stay as they are",
  },
} as const;

/** The groups in which a person must act come first, then those that wait for a slot. */
export function waitingGroups(facts: Facts, nowMs: number): WaitingGroup[] {
  const { counts, supervisor } = facts.snapshot;
  const groups = [
    ...heldGroups(supervisor),
    ...gateGroups(supervisor, facts.accepted, counts.held),
    ...delayedGroup(facts, nowMs),
  ];
  const { waiting, ready, delayed, held } = counts;
  const all = waiting.count + ready + delayed + held;
  const rest = all - sumOf(groups);
  if (rest <= 0) return groups;
  const { text, todo, isForAll } = whyNothingStarts(facts.snapshot, nowMs);
  const told = new Set(groups.flatMap(({ tasks }) => tasks.map(({ id }) => id)));
  const areBlocked = groups.some(({ code }) => code === "blocked");
  const due = facts.accepted.filter(
    (one) => one.gate === null && one.due_ms <= nowMs && !told.has(one.id),
  );
  const gates = isForAll ? [] : closedGates(supervisor);
  const inbox = facts.inbox
    .filter((one) => !told.has(one.id) && !(areBlocked && one.has_dependencies))
    .map((one) => ({ id: one.id, gate: gateAt(gates, one.lane, nowMs)?.gate }));
  const known = groups.map((group) => withInbox(group, inbox, Math.max(0, rest - due.length)));
  const left = Math.max(0, all - sumOf(known));
  const tasks = [...due, ...inbox.filter(({ gate }) => gate === undefined)].map(({ id }) => ({
    id,
    why: "",
    due_ms: null,
  }));
  const count = { ...waiting, count: left };
  return left === 0 ? known : [...known, { code: "start", text, count, tasks, do: todo }];
}

function sumOf(groups: readonly WaitingGroup[]): number {
  return groups.reduce((sum, { count }) => sum + (count?.count ?? 0), 0);
}

/**
 * The group with the tasks of the inbox that wait at its gate.
 * @param inbox some tasks of the inbox, each with the gate that holds it; when they are all of this gate, so are those not looked at
 * @param all how many tasks of the inbox are not told elsewhere
 */
function withInbox(
  group: WaitingGroup,
  inbox: readonly { id: string; gate: string | undefined }[],
  all: number,
): WaitingGroup {
  const own = inbox.filter(({ gate }) => gate !== undefined && codeOf(gate) === group.code);
  if (own.length === 0) return group;
  const { count = 0, is_exact: isExact = true } = group.count ?? {};
  const more = own.length === inbox.length ? all : own.length;
  return {
    ...group,
    count: { count: count + more, is_exact: isExact && inbox.length >= all },
    tasks: [...group.tasks, ...own.map(({ id }) => ({ id, why: "", due_ms: null }))],
  };
}

/** What keeps tasks from starting that are otherwise ready to start. */
function whyNothingStarts(
  s: Snapshot,
  nowMs: number,
): { text: string; todo: string | null; isForAll: boolean } {
  const { supervisor, control } = s;
  const closed = closedPool(poolOf(supervisor, nowMs, control));
  if (closed !== undefined) {
    const isForAll = closed.code !== "supervisor";
    return { text: `wait: ${closed.why}`, todo: closed.do, isForAll };
  }
  const { busy, total } = slotsOf(s);
  const isRead = supervisor.document?.waiting.is_complete !== false;
  const reading = isRead ? "" : "; the inbox is still being read";
  return {
    text: `wait for a free slot: ${countText(busy)} of ${countText(total)} are busy${reading}`,
    todo: null,
    isForAll: false,
  };
}

function heldGroups(supervisor: SupervisorView): WaitingGroup[] {
  const waiting = supervisor.document?.waiting;
  if (waiting === undefined || !(isAttended(supervisor) || supervisor.state === "stopped"))
    return [];
  const { held = [], blocked, unmatched, unreadable = 0, is_complete: isExact } = waiting;
  const of = (state: HeldTask["state"]): WaitingTask[] =>
    held
      .filter((one) => one.state === state)
      .map(({ id, why }) => ({ id, why: why.replace(/^it /, ""), due_ms: null }));
  const closed = of("closed");
  const counts = { blocked, unmatched, unreadable, closed: closed.length };
  return (["unreadable", "unmatched", "closed", "blocked"] as const).flatMap((code) => {
    const { many: text, do: todo } = WAITS[code];
    const count = { count: counts[code], is_exact: isExact && code !== "closed" };
    return count.count === 0
      ? []
      : [{ code, text, count, tasks: of(code), do: code === "blocked" ? null : todo }];
  });
}

/** One group for each gate that is closed or holds tasks. */
function gateGroups(
  supervisor: SupervisorView,
  accepted: readonly AcceptedTask[],
  heldCount: number,
): WaitingGroup[] {
  const closed = new Map<string, ClosedGate>(closedGates(supervisor).map((one) => [one.gate, one]));
  const held = accepted.filter(({ gate }) => gate !== null);
  const isExact = held.length === heldCount;
  return [...new Set([...closed.keys(), ...held.map(({ gate }) => gate ?? "")])].map((gate) => {
    const told = closed.get(gate);
    const tasks = held.filter((one) => one.gate === gate);
    return {
      code: codeOf(gate),
      text: told === undefined ? namedGate(gate) : `wait: ${told.why}`,
      // Other tasks of this gate are in the inbox, where they are not counted.
      count: tasks.length === 0 ? null : { count: tasks.length, is_exact: isExact },
      tasks: tasks.map(({ id }) => ({ id, why: "", due_ms: told?.until_ms ?? null })),
      do: told?.do ?? null,
    };
  });
}

/** The code of a group of tasks that wait at a gate. */
export const codeOf = (gate: string): string => `gate ${gate}`;

/** For a gate that the supervisor has not told about yet. */
function namedGate(gate: string): string {
  return isLandingGate(gate) ? "wait to land" : `wait: at the gate ${gate}`;
}

function delayedGroup({ snapshot, accepted, inbox }: Facts, nowMs: number): WaitingGroup[] {
  const { counts, supervisor } = snapshot;
  // The supervisor also counts tasks that wait between two runs.
  const told = isAttended(supervisor) ? (supervisor.document?.waiting.delayed ?? 0) : 0;
  const tasks = [...accepted.filter(({ gate }) => gate === null), ...inbox]
    .map(({ id, due_ms }) => ({ id, why: "", due_ms }))
    .filter((one) => (one.due_ms ?? 0) > nowMs)
    .sort((x, y) => (x.due_ms ?? 0) - (y.due_ms ?? 0));
  const count = Math.max(told, counts.delayed, tasks.length);
  if (count === 0) return [];
  return [
    {
      code: "delayed",
      text: WAITS.delayed.many,
      count: { count, is_exact: true },
      tasks,
      do: null,
    },
  ];
}

export function slotsOf({ workers, control, counts }: Snapshot): Overview["slots"] {
  const alive = workers.filter((worker) => worker.verdict !== "dead");
  const total = alive.reduce((sum, { id, slots }) => sum + (control.slots[id] ?? slots), 0);
  return { busy: counts.running, total, processes: alive.length };
}

export function pausedText({ control }: Snapshot, nowMs: number): string {
  const { paused_at: at } = control;
  return at === null ? "paused" : `paused ${ago(Date.parse(at), nowMs)}`;
}
