/** Decides when to report an open question: at once, and again while it has no answer. Pure. */
import type { Question } from "../../questions/question-file.ts";

const MINUTE_MS = 60_000;
/** Times of the reminders after the question was asked (ms). */
const AGAIN_MS = [5 * MINUTE_MS, 60 * MINUTE_MS, 180 * MINUTE_MS] as const;

export class Reminders {
  /** How many reports of each open question were due so far, by id. */
  private told = new Map<string, number>();

  /** The questions to report now. After a restart, the new supervisor reports each question once more. @param nowMs epoch ms */
  due<T extends Pick<Question, "id" | "asked_at_ms">>(open: readonly T[], nowMs: number): T[] {
    const times = new Map(open.map(({ id, asked_at_ms: atMs }) => [id, timesOf(nowMs - atMs)]));
    const due = open.filter(({ id }) => (times.get(id) ?? 0) > (this.told.get(id) ?? 0));
    // If the clock is set back, no question is reported twice.
    this.told = new Map(
      [...times].map(([id, count]) => [id, Math.max(count, this.told.get(id) ?? 0)]),
    );
    return due;
  }
}

function timesOf(ageMs: number): number {
  return 1 + AGAIN_MS.filter((afterMs) => ageMs >= afterMs).length;
}
