/**
 * Notes when a run's stream was read, in `events.times` beside `events.jsonl`, because most lines of programs have no time. Each line,
 * `<bytes> <ms>`, says how much of the stream had been written at that time (epoch ms). Only people use it; nothing depends on it.
 */
import { appendRegularText } from "../../host/regular-file.ts";

/** One entry covers all bytes that came within this time (ms). */
const ENTRY_MS = 1000;

export function timesFileOf(eventsLog: string): string {
  return eventsLog.replace(/\.jsonl$/, ".times");
}

export class ReadTimesWriter {
  private readonly path: string;
  private offset: number;
  /** When something was last read since the last entry (epoch ms). */
  private pendingMs: number | undefined;
  private writtenMs = 0;

  /** @param from where this run's part of the stream begins (bytes) */
  constructor(eventsLog: string, from: number) {
    this.path = timesFileOf(eventsLog);
    this.offset = from;
  }

  /** @param bytes how many came since the last call; may be 0 */
  note(bytes: number, nowMs: number): void {
    this.offset += bytes;
    if (bytes > 0) this.pendingMs = nowMs;
    if (nowMs - this.writtenMs >= ENTRY_MS) this.flush();
  }

  flush(): void {
    if (this.pendingMs === undefined) return;
    this.writtenMs = this.pendingMs;
    try {
      appendRegularText(this.path, `${this.offset} ${this.pendingMs}\n`);
    } catch {
      // The disk is full, or the program has put another file there. Then its lines have no times.
    }
    this.pendingMs = undefined;
  }
}

/** The entries of the file. Lines that are not entries, such as a torn line, are left out. */
export function parseReadTimes(text: string): ReadTimes {
  const ends: number[] = [];
  const times: number[] = [];
  for (const line of text.split("\n")) {
    const [, end, ms] = /^(\d{1,15}) (\d{1,15})$/.exec(line) ?? [];
    if (end === undefined || Number(end) < (ends.at(-1) ?? 0)) continue;
    ends.push(Number(end));
    times.push(Number(ms));
  }
  return new ReadTimes(ends, times);
}

export class ReadTimes {
  /** @param ends ascending, one for each time */
  constructor(
    private readonly ends: readonly number[],
    private readonly times: readonly number[],
  ) {}

  /** When the stream was written up to this place (epoch ms); undefined when no entry says so. */
  at(end: number): number | undefined {
    let [low, high] = [0, this.ends.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.ends[middle] ?? 0) < end) low = middle + 1;
      else high = middle;
    }
    return this.times[low];
  }
}
