/** What ran in the last hours, and what ended last, from the journal. Reads little in each look. */
import type { StateTree } from "../../core/state-tree.ts";
import { JournalPast } from "../../journal/past.ts";
import { columnsOf } from "../../view/timeline/lay-out.ts";
import { Timeline } from "../../view/timeline/timeline.ts";
import type { PastShown } from "./frame.ts";
import { PAST_HOURS } from "./head.ts";

const PAST_MS = PAST_HOURS * 60 * 60 * 1000;
/** The least time between two looks (ms). */
const AGAIN_MS = 1000;
/** In a pool that is faster than this the line is behind, and its end is blank. */
const LIMITS = { lookBytes: 256 * 1024, bytesMax: 16 * 1024 * 1024 };

export class Past {
  private readonly timeline = new Timeline();
  private readonly journal: JournalPast;
  private lookedMs = Number.NEGATIVE_INFINITY;
  private shown: PastShown = { columns: [], ended: [] };

  constructor(tree: StateTree) {
    this.journal = new JournalPast(
      tree.events,
      PAST_MS,
      (text) => this.timeline.addText(text),
      LIMITS,
    );
  }

  /** @param count of columns */
  look(count: number, nowMs: number): PastShown {
    if (performance.now() - this.lookedMs < AGAIN_MS && this.shown.columns.length === count)
      return this.shown;
    this.lookedMs = performance.now();
    this.journal.look(nowMs);
    const knownMs = this.journal.isComplete ? nowMs : this.timeline.lastMs;
    const span = { fromMs: nowMs - PAST_MS, toMs: nowMs, nowMs: knownMs };
    const ended = this.timeline.latest.toReversed();
    this.shown = { columns: columnsOf(this.timeline, span, count), ended };
    return this.shown;
  }

  close(): void {
    this.journal.close();
  }
}
