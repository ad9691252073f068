/**
 * Decides when runs of an account may start. A limit of the service closes the account's gate until the time that the service gave.
 * Then one run probes it. The next runs start one after another, each after the one before it got an answer, because many runs at
 * once would hit the limit again at the reset. Pure.
 */
import { compact } from "../../core/compact.ts";
import { QUOTA_GATE } from "../../core/gates.ts";
import {
  having,
  isNumber,
  isText,
  type Of,
  oneOf,
  optional,
  orElse,
  orNull,
  recordOf,
  shape,
} from "../../core/shape.ts";

const isWindow = having({
  used_pct: isNumber,
  /** Epoch ms. */
  resets_at_ms: isNumber,
});
export type QuotaWindow = Of<typeof isWindow>;

/** A gate; open where the file says nothing. */
export const gate = shape({
  v: oneOf(1),
  account: isText,
  status: orElse(oneOf("open", "closed", "opening"), "open"),
  /** Until when it is closed (epoch ms). */
  until_ms: orElse(isNumber, 0),
  /** The window of the quota that is used up, as the service calls it. */
  window: orElse(orNull(isText), null),
  reason: orElse(isText, ""),
  closed_at_ms: orElse(isNumber, 0),
  /** How many times in a row it was closed while the service gave no time. */
  closings: orElse(isNumber, 0),
  /** The one run that may start before the others. */
  probe: orElse(orNull(having({ owner: isText, since_ms: isNumber })), null),
  /** Runs that got an answer since it began to open. */
  answers: orElse(isNumber, 0),
  /** How full the windows of its quota are, as the service told runs. Left out when nothing is known. */
  windows: optional(recordOf(isWindow)),
});
export type GateDocument = Of<typeof gate>;

export type Entry =
  | { may: true; gate: GateDocument }
  /** `isTurn`: it waits until the run before it gets an answer, not until a time. */
  | { may: false; gate: GateDocument; untilMs: number; why: string; isTurn?: true };

export interface Refusal {
  /** Epoch ms, given by the service as a number; null: it gave none. */
  untilMs: number | null;
  window: string | null;
  reason: string;
}

/** This many runs start one after another; then all may start again. */
const ANSWERS_TO_OPEN = 5;
/** After this time, a run that waits for its turn asks again (ms). */
const TURN_MS = 2000;
/** After this time without an answer, a probe no longer holds up the others (ms). */
const PROBE_MS_MAX = 10 * 60_000;
/** How long the gate stays closed when the service gave no time (ms). It doubles each time. */
const CLOSED_MS = { first: 30_000, max: 60 * 60_000 } as const;
/** No window of a quota is longer than this (ms). A time further ahead comes from a wrong clock. */
const WINDOW_MS_MAX = 32 * 24 * 60 * 60_000;
/** A gate remembers at most this many windows. */
const WINDOWS_MAX = 20;
/** If a gate was closed at a time further in the future than this, the clock was wrong (ms). */
const CLOCK_MS_MAX = 60_000;

/** The gate in the file names of tasks that wait for this account: see stage "hold" in `names.ts`. */
export function quotaHold(account: string): string {
  return `${QUOTA_GATE}${account}`;
}

export const openGate = (account: string): GateDocument => gate({ v: 1, account }) as GateDocument;

/**
 * Whether a run may start now.
 * @param isAlive whether the run that probes still runs
 * @param reservePct this much of each window is left to the owner of the account
 */
export function enterGate(
  gate: GateDocument,
  owner: string,
  nowMs: number,
  isAlive: (owner: string) => boolean,
  reservePct = 0,
): Entry {
  const isClosed = gate.status === "closed" && nowMs < endOf(gate, nowMs);
  const left = reservedWindow(gate, reservePct, nowMs);
  if (left !== undefined && (!isClosed || left.untilMs > gate.until_ms))
    return { may: false, gate, untilMs: left.untilMs, why: left.why };
  if (isClosed) return { may: false, gate, untilMs: gate.until_ms, why: gate.reason };
  if (gate.status === "open") return { may: true, gate };
  const { probe } = gate;
  const isTaken =
    gate.status === "opening" &&
    probe !== null &&
    probe.owner !== owner &&
    Math.abs(nowMs - probe.since_ms) < PROBE_MS_MAX &&
    isAlive(probe.owner);
  if (isTaken)
    return {
      may: false,
      gate,
      untilMs: nowMs + TURN_MS,
      why: "the limit is over; runs start one after another",
      isTurn: true,
    };
  return {
    may: true,
    gate: { ...gate, status: "opening", probe: { owner, since_ms: nowMs } },
  };
}

/** The window that has only its reserve for the account's owner left. Of several, the one that ends last. */
function reservedWindow(
  { windows = {} }: GateDocument,
  reservePct: number,
  nowMs: number,
): { untilMs: number; why: string } | undefined {
  if (reservePct <= 0) return undefined;
  const [last] = Object.entries(windows)
    .filter(([, window]) => isCurrent(window, nowMs) && window.used_pct >= 100 - reservePct)
    .sort(([, a], [, b]) => b.resets_at_ms - a.resets_at_ms);
  if (last === undefined) return undefined;
  const [name, { resets_at_ms: untilMs }] = last;
  return { untilMs, why: `the last ${reservePct} % of its quota (${name}) are left to its owner` };
}

/** Whether the window has not ended. An end too far in the future comes from a wrong clock, and does not count. */
function isCurrent({ resets_at_ms: endMs }: QuotaWindow, nowMs: number): boolean {
  return endMs > nowMs && endMs <= nowMs + WINDOW_MS_MAX;
}

/** Notes how full a window of the quota is, as a run was told. */
export function noteWindow(
  gate: GateDocument,
  name: string,
  window: QuotaWindow,
  nowMs: number,
): GateDocument {
  const others = Object.entries(gate.windows ?? {})
    .filter(([other, one]) => other !== name && isCurrent(one, nowMs))
    .slice(-WINDOWS_MAX);
  return { ...gate, windows: Object.fromEntries([...others, [name, window]]) };
}

/** Until when the gate is closed. If the clock was wrong when it closed, it is not closed, so that a run tries the service. */
function endOf({ until_ms: untilMs, closed_at_ms: closedAtMs }: GateDocument, nowMs: number) {
  const isWrong = closedAtMs > nowMs + CLOCK_MS_MAX || untilMs > nowMs + WINDOW_MS_MAX;
  return isWrong ? nowMs : untilMs;
}

/** Called when a run got an answer. */
export function passGate(gate: GateDocument, owner: string): GateDocument {
  if (gate.status !== "opening" || gate.probe?.owner !== owner) return gate;
  const answers = gate.answers + 1;
  return answers >= ANSWERS_TO_OPEN
    ? { ...openGate(gate.account), ...compact({ windows: gate.windows }) }
    : { ...gate, probe: null, answers, closings: 0 };
}

/** Called when a run ended or was not started, and got no answer. */
export function leaveGate(gate: GateDocument, owner: string): GateDocument {
  return gate.probe?.owner === owner ? { ...gate, probe: null } : gate;
}

/** Called when the service refused a run. @param random uniform in [0, 1), for jitter */
export function closeGate(
  gate: GateDocument,
  refusal: Refusal,
  nowMs: number,
  random: number,
): GateDocument {
  // A time in the past, or further ahead than any window lasts, is ignored.
  const leftMs = (refusal.untilMs ?? 0) - nowMs;
  const saidMs = leftMs > 0 && leftMs <= WINDOW_MS_MAX ? refusal.untilMs : null;
  const closings = saidMs === null ? gate.closings + 1 : 0;
  const backoffMs = Math.min(CLOSED_MS.max, CLOSED_MS.first * 2 ** Math.min(closings - 1, 20));
  const untilMs = saidMs ?? nowMs + Math.round(backoffMs * (0.75 + random / 2));
  const isStillClosed = gate.status === "closed" && endOf(gate, nowMs) > nowMs;
  return {
    ...gate,
    status: "closed",
    // The service may refuse several runs at once. The latest time counts, so a guess does not shorten a time that the service gave.
    until_ms: isStillClosed ? Math.max(gate.until_ms, untilMs) : untilMs,
    window: refusal.window,
    reason: refusal.reason,
    closed_at_ms: nowMs,
    closings: isStillClosed ? gate.closings : closings,
    probe: null,
    answers: 0,
  };
}
