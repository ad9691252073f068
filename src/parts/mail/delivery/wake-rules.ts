/** When an agent is woken for its mail: after a moment of quiet, later after failures, and not at all once it looks like a loop. Pure. */
import { createHash } from "node:crypto";
import { type Address, formatAddress, type Scope, sameScope } from "../scope/scope.ts";
import type { Cursor } from "../store/cursors.ts";
import type { Numbered } from "../store/read-messages.ts";
import type { WakeRecord } from "../store/wake-log.ts";
import type { Bundle } from "./bundle.ts";

/** Messages that come close together are one wake-up (ms). */
const QUIET_MS = 2000;
const QUIET_MS_MAX = 10_000;
const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
/** So many times within an hour an agent gets mail that is only its own. */
const SELF_MAX = 3;
/** The wait after each failed wake-up, and between wake-ups of one chain. */
const WAITS_MS = [0, MINUTE_MS, 5 * MINUTE_MS, 25 * MINUTE_MS] as const;
/** From this many hops on wake-ups wait; from the second number on they are held. */
const HOPS_SLOW = 6;
const HOPS_MAX = 12;

export interface WakeFacts {
  cursor: Cursor;
  /** Whether it may be woken by what waits: messages of mailchute itself wake the orchestrator only. */
  canWake: boolean;
  bundle: Pick<Bundle, "hops">;
  /** If all of it is the agent's own: when it got such mail before (epoch ms). Else empty. */
  selfAtMs: readonly number[];
  /** When the first and the last message was seen, and now (monotonic ms). */
  sinceMs: number;
  lastMs: number;
  nowMs: number;
  /** When the cursor was written, when the last message was sent, and now (epoch ms). */
  cursorAtMs: number;
  sentAtMs: number;
  wallMs: number;
}

/**
 * What of its unread mail an agent at work gets now: that which is for the time after its run waits, unless other mail has come behind it.
 * Mail is read in order.
 */
export function dueAtWork<T extends Pick<Numbered, "when">>(messages: readonly T[]): readonly T[] {
  const last = messages.findLastIndex(({ when }) => when !== "idle");
  return messages.slice(0, last + 1);
}

/** Messages of mailchute itself wake the orchestrator only. */
export function canWakeBy(
  { messages, isCut }: { messages: readonly Pick<Numbered, "via">[]; isCut: boolean },
  isOrchestrator: boolean,
): boolean {
  return isOrchestrator || isCut || messages.some(({ via }) => via !== "system");
}

/** Whether all of it is said by the agent that gets it. */
export function isOwnMail(
  scope: Scope,
  name: string,
  { messages }: Pick<Bundle, "messages">,
): boolean {
  return messages.every((one) => sameScope(one, scope) && one.from_agent === name);
}

/**
 * When an agent got mail that was only its own (epoch ms). The same messages count once: a run that ended before it had read them is
 * followed by a wake-up for them.
 */
export function selfTimes(wakes: readonly WakeRecord[]): number[] {
  const known = new Set<string>();
  return wakes.flatMap(({ is_self: isSelf, ids, at }) => {
    if (!isSelf) return [];
    const isNew = ids.length === 0 || ids.some((id) => !known.has(id));
    for (const id of ids) known.add(id);
    return isNew ? [at * 1000] : [];
  });
}

/** "soon": it waits only for quiet. */
export type WakeVerdict = "now" | "soon" | "later" | "held";

export function judgeWake(facts: WakeFacts): { verdict: WakeVerdict; why: string } {
  if (!facts.canWake)
    return { verdict: "later", why: "messages of mailchute itself wake the orchestrator only" };
  const { cursor, sinceMs, lastMs, nowMs } = facts;
  const chain = judgeChain(facts);
  if (chain.verdict === "held") return chain;
  const { fails } = cursor;
  const failWaitMs = WAITS_MS[fails];
  if (failWaitMs === undefined)
    return { verdict: "held", why: `${fails} wake-ups ended before the agent had read it` };
  if (!isOver(facts, facts.cursorAtMs, failWaitMs)) {
    const why = `the last wake-up ended before the agent had read it: ${minutes(failWaitMs)} later`;
    return { verdict: "later", why };
  }
  if (chain.verdict !== "now") return chain;
  if (nowMs - lastMs >= QUIET_MS || nowMs - sinceMs >= QUIET_MS_MAX) return chain;
  return { verdict: "soon", why: "messages that come close together are one wake-up" };
}

/** Whether the chain of messages may go on: that holds for an agent at work, too, which need not be woken. */
export function judgeChain(facts: Pick<WakeFacts, "bundle" | "selfAtMs" | "sentAtMs" | "wallMs">): {
  verdict: "now" | "later" | "held";
  why: string;
} {
  const { bundle, selfAtMs, wallMs } = facts;
  const { hops } = bundle;
  if (hops >= HOPS_MAX) {
    const why = `it is the answer to ${HOPS_MAX} wake-ups, and no person spoke in between`;
    return { verdict: "held", why };
  }
  const step = Math.min(WAITS_MS.length - 1, Math.max(0, Math.ceil((hops - HOPS_SLOW + 1) / 2)));
  const waitMs = WAITS_MS[step] ?? 0;
  if (!isOver(facts, facts.sentAtMs, waitMs)) {
    const why = `it is the answer to ${hops} wake-ups, and no person spoke in between: ${minutes(waitMs)} later`;
    return { verdict: "later", why };
  }
  const recent = selfAtMs.filter((atMs) => atMs <= wallMs && wallMs - atMs < HOUR_MS);
  if (recent.length >= SELF_MAX) {
    const why = `its own words have reached it ${SELF_MAX} times within an hour`;
    return { verdict: "later", why };
  }
  return { verdict: "now", why: "" };
}

/** A time in the future is that of a clock that was set back. */
function isOver({ wallMs }: Pick<WakeFacts, "wallMs">, sinceMs: number, waitMs: number): boolean {
  return wallMs - sinceMs >= waitMs || sinceMs > wallMs;
}

function minutes(ms: number): string {
  return ms === MINUTE_MS ? "1 minute" : `${ms / MINUTE_MS} minutes`;
}

/** What the ids of all wake-ups of this agent begin with. */
export function wakePrefixOf(address: Address, inc: number): string {
  const hash = createHash("sha256").update(formatAddress(address)).digest("hex").slice(0, 16);
  return `wake.${hash}.${inc}.`;
}

/** The id of the wake-up for the mail above this cursor: a second process, or a second try, has the same. */
export function wakeIdOf(address: Address, inc: number, cursor: Cursor): string {
  return `${wakePrefixOf(address, inc)}${cursor.n}`;
}
