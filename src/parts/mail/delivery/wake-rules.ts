/** When an agent is woken for its mail: after a moment of quiet, later after failures, and not at all once it looks like a loop. Pure. */
import { createHash } from "node:crypto";
import { type Address, formatAddress } from "../scope/scope.ts";
import type { Cursor } from "../store/cursors.ts";
import type { Bundle } from "./bundle.ts";

/** Messages that come close together are one wake-up (ms). */
const QUIET_MS = 2000;
const QUIET_MS_MAX = 10_000;
const MINUTE_MS = 60_000;
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
  /** When the first and the last message was seen, and now (monotonic ms). */
  sinceMs: number;
  lastMs: number;
  nowMs: number;
  /** When the cursor was written, when the last message was sent, and now (epoch ms). */
  cursorAtMs: number;
  sentAtMs: number;
  wallMs: number;
}

/** @returns "soon" when it waits only for quiet, or why the mail is held */
export function judgeWake(facts: WakeFacts): "now" | "soon" | "later" | { held: string } {
  if (!facts.canWake) return "later";
  const { cursor, bundle, sinceMs, lastMs, nowMs, cursorAtMs, sentAtMs, wallMs } = facts;
  if (bundle.hops >= HOPS_MAX)
    return { held: `it is the answer to ${HOPS_MAX} wake-ups, and no person spoke in between` };
  const failWaitMs = WAITS_MS[cursor.fails];
  if (failWaitMs === undefined)
    return { held: `${cursor.fails} wake-ups ended before the agent had read it` };
  const isQuiet = nowMs - lastMs >= QUIET_MS || nowMs - sinceMs >= QUIET_MS_MAX;
  const step = Math.min(
    WAITS_MS.length - 1,
    Math.max(0, Math.ceil((bundle.hops - HOPS_SLOW + 1) / 2)),
  );
  const hopWaitMs = WAITS_MS[step] ?? 0;
  // A time in the future is that of a clock that was set back.
  const isOver = (sinceWallMs: number, waitMs: number): boolean =>
    wallMs - sinceWallMs >= waitMs || sinceWallMs > wallMs;
  if (!isOver(cursorAtMs, failWaitMs) || !isOver(sentAtMs, hopWaitMs)) return "later";
  return isQuiet ? "now" : "soon";
}

/** The id of the wake-up for the mail above this cursor: a second process, or a second try, has the same. */
export function wakeIdOf(address: Address, inc: number, cursor: Cursor): string {
  const hash = createHash("sha256").update(formatAddress(address)).digest("hex").slice(0, 16);
  return `wake.${hash}.${inc}.${cursor.n}`;
}
