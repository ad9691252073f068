/** Follows what coding agents have cost on each day (UTC), run by run. Reads the files of the days that are asked for as they grow. */
import { readCostRecord } from "../../agents/cost-records.ts";
import { CostSums } from "../../agents/cost-sums.ts";
import type { Settings } from "../../core/settings.ts";
import { costsOf, type StateTree } from "../../core/state-tree.ts";
import { dayOf, fileOfDay } from "../../journal/daily.ts";
import { JournalTail } from "../../journal/tail.ts";

/** What all runs of a day have cost up to a time. */
export interface CostPoint {
  at_ms: number;
  /** Millionths of a US dollar since the day (UTC) began. */
  usd_micro: number;
}

const DAY_MS = 24 * 60 * 60 * 1000;
/** How much of a day's file one look reads, and how many points a day keeps. */
const PIECE_BYTES = 1024 * 1024;
const PIECES_MAX = 64;
const POINTS_MAX = 5000;
/** Of more days than this the ones that were asked for before are read anew. */
const DAYS_MAX = 64;

interface Day {
  tail: JournalTail;
  sums: CostSums;
  points: CostPoint[];
}

export class DayCosts {
  private readonly days = new Map<string, Day>();

  constructor(
    private readonly tree: StateTree,
    private readonly prices: Settings["prices"],
  ) {}

  /** @returns the points of each day that the time touches, in their order; each day begins at 0 */
  look(fromMs: number, toMs: number): CostPoint[] {
    const points: CostPoint[] = [];
    for (let ms = Math.floor(fromMs / DAY_MS) * DAY_MS; ms < toMs; ms += DAY_MS) {
      const day = this.dayAt(ms);
      if (day.points.length === 0) continue;
      points.push({ at_ms: ms, usd_micro: 0 }, ...day.points);
    }
    return points;
  }

  close(): void {
    this.forget();
  }

  private forget(): void {
    for (const { tail } of this.days.values()) tail.close();
    this.days.clear();
  }

  private dayAt(ms: number): Day {
    const key = dayOf(ms);
    let day = this.days.get(key);
    if (day === undefined) {
      if (this.days.size >= DAYS_MAX) this.forget();
      const tail = new JournalTail(fileOfDay(costsOf(this.tree), ms));
      day = { tail, sums: new CostSums("day", this.prices), points: [] };
      this.days.set(key, day);
    }
    for (let pieces = 0; pieces < PIECES_MAX; pieces++) {
      const lines = day.tail.next(PIECE_BYTES);
      if (lines.length === 0) break;
      for (const line of lines) add(day, line);
    }
    // Of very many points every second one tells as much.
    if (day.points.length > POINTS_MAX)
      day.points = day.points.filter((_, at, { length }) => (length - at) % 2 === 1);
    return day;
  }
}

function add({ sums, points }: Day, line: Record<string, unknown>): void {
  const record = readCostRecord(line);
  if (record === undefined) return;
  const before = sums.total.cost_usd_micro;
  sums.add(record);
  const { cost_usd_micro: usd } = sums.total;
  if (usd > before) points.push({ at_ms: record.at * 1000, usd_micro: usd });
}
