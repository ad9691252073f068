/** Decides when an agent is woken for its mail: after a quiet moment, later after failures, and not at all if it looks like a loop. Pure. */
import { createHash } from "node:crypto";
import { derivedId } from "../../../core/derived-id.ts";
import { type Address, formatAddress, type Scope, sameScope } from "../scope/scope.ts";
import type { Cursor } from "../store/cursors.ts";
import type { Numbered } from "../store/read-messages.ts";
import type { WakeRecord } from "../store/wake-log.ts";
import type { Bundle } from "./bundle.ts";

/** Messages that arrive within this time share one wake-up (ms). */
const QUIET_MS = 2000;
const QUIET_MS_MAX = 10_000;
const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
/** How often within an hour an agent gets a bundle with only its own messages. */
const SELF_MAX = 3;
/** The wait after each failed wake-up, and between wake-ups of one chain. */
const WAITS_MS = [0, MINUTE_MS, 5 * MINUTE_MS, 25 * MINUTE_MS] as const;
/** Wake-ups with at least `HOPS_SLOW` hops wait; those with at least `HOPS_MAX` are held. */
const HOPS_SLOW = 6;
const HOPS_MAX = 12;

export interface WakeFacts {
  cursor: Cursor;
  /** True if the waiting mail may wake the agent: messages of mailchute itself wake only the orchestrator. */
  canWake: boolean;
  bundle: Pick<Bundle, "hops">;
  /** If the agent itself sent all of the mail: when it got such mail before (epoch ms). Otherwise empty. */
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
 * The unread mail that an agent at work gets now. Mail for the time after the run waits, unless other mail came after it: mail is read
 * in order.
 */
export function dueAtWork<T extends Pick<Numbered, "when">>(messages: readonly T[]): readonly T[] {
  const last = messages.findLastIndex(({ when }) => when !== "idle");
  return messages.slice(0, last + 1);
}

/** Messages of mailchute itself wake only the orchestrator. */
export function canWakeBy(
  { messages, isCut }: { messages: readonly Pick<Numbered, "via">[]; isCut: boolean },
  isOrchestrator: boolean,
): boolean {
  return isOrchestrator || isCut || messages.some(({ via }) => via !== "system");
}

/** True if the agent itself sent all messages of the bundle. */
export function isOwnMail(
  scope: Scope,
  name: string,
  { messages }: Pick<Bundle, "messages">,
): boolean {
  return messages.every((one) => sameScope(one, scope) && one.from_agent === name);
}

/**
 * When an agent got bundles with only its own messages (epoch ms). The same messages count once: if a run ends before it has read
 * them, a wake-up delivers them again.
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

/** "soon": the wake-up only waits until no more messages come. */
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

/** Decides whether the chain of messages may go on. This also limits an agent at work, which need not be woken. */
export function judgeChain(facts: Pick<WakeFacts, "bundle" | "selfAtMs" | "sentAtMs" | "wallMs">): {
  verdict: "now" | "later" | "held";
  why: string;
} {
  const { bundle, selfAtMs, wallMs } = facts;
  const { hops } = bundle;
  if (hops >= HOPS_MAX) {
    const why = `${HOPS_MAX} wake-ups led to it, and no person spoke in between`;
    return { verdict: "held", why };
  }
  const step = Math.min(WAITS_MS.length - 1, Math.max(0, Math.ceil((hops - HOPS_SLOW + 1) / 2)));
  const waitMs = WAITS_MS[step] ?? 0;
  if (!isOver(facts, facts.sentAtMs, waitMs)) {
    const why = `${hops} wake-ups led to it, and no person spoke in between: ${minutes(waitMs)} later`;
    return { verdict: "later", why };
  }
  const recent = selfAtMs.filter((atMs) => atMs <= wallMs && wallMs - atMs < HOUR_MS);
  if (recent.length >= SELF_MAX) {
    const why = `its own messages have reached it ${SELF_MAX} times within an hour`;
    return { verdict: "later", why };
  }
  return { verdict: "now", why: "" };
}

/** True if the wait is over. A time in the future counts as over, because the clock was set back. */
function isOver({ wallMs }: Pick<WakeFacts, "wallMs">, sinceMs: number, waitMs: number): boolean {
  return wallMs - sinceMs >= waitMs || sinceMs > wallMs;
}

function minutes(ms: number): string {
  return ms === MINUTE_MS ? "1 minute" : `${ms / MINUTE_MS} minutes`;
}

/** The prefix of the ids of all wake-ups of this agent. */
export function wakePrefixOf(address: Address, inc: number): string {
  const hash = createHash("sha256").update(formatAddress(address)).digest("hex").slice(0, 16);
  return `wake.${hash}.${inc}.`;
}

/** The id of the wake-up for the mail above this cursor. A second process or a second try gets the same id. */
export function wakeIdOf(address: Address, inc: number, cursor: Cursor): string {
  return derivedId(wakePrefixOf(address, inc).slice(0, -1), `.${cursor.n}`);
}
