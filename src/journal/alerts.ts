/** Tells people of troubles: in `alerts.jsonl` and on the terminal. */
import type { Clock } from "../core/clock.ts";
import { isoTime } from "../core/iso-time.ts";
import { visible } from "../core/visible.ts";
import { Journal } from "./journal.ts";

/** A lasting trouble is reported once in this time (ms). */
const AGAIN_MS = 60_000;
const KEYS_MAX = 1000;
/** The terminal shows so many alerts of one kind in `AGAIN_MS`; the others stand only in the journal. */
const TOLD_MAX = 20;

export class Alerts {
  private readonly journal: Journal;
  private readonly clock: Clock;
  private readonly onNotice: (notice: string) => void;
  private readonly toldAtMs = new Map<string, number>();
  /** For each kind of alert: when its period began (monotonic ms), and how many came since then. */
  private readonly recent = new Map<string, { sinceMs: number; count: number }>();

  constructor(path: string, clock: Clock, onNotice: (notice: string) => void) {
    this.journal = new Journal(path, true);
    this.clock = clock;
    this.onNotice = onNotice;
  }

  /** A line in the journal. */
  raise(kind: string, message: string): void {
    const t = this.clock.wallMs();
    this.journal.append(
      JSON.stringify({ alert: kind, message: visible(message), timestamp: isoTime(t), t }),
    );
    this.journal.flush();
  }

  /**
   * Writes a line to the journal. Shows it on the terminal, unless many of its kind were shown just now.
   * @param told what the terminal shows, when that is more
   */
  alert(kind: string, message: string, told: () => string = () => message): void {
    if (this.mayTell(kind)) this.onNotice(told());
    this.raise(kind, message);
  }

  /** Counts an alert of this kind. The first one too many shows a notice instead. */
  private mayTell(kind: string): boolean {
    const nowMs = this.clock.monotonicMs();
    let recent = this.recent.get(kind);
    if (recent === undefined || nowMs - recent.sinceMs >= AGAIN_MS) {
      recent = { sinceMs: nowMs, count: 0 };
      this.recent.set(kind, recent);
    }
    recent.count++;
    if (recent.count === TOLD_MAX + 1)
      this.onNotice(
        `many alerts of one kind (${kind}): more are not told here for a while; \`mailchute ls --state-is failed\` names what failed`,
      );
    return recent.count <= TOLD_MAX;
  }

  /** A line for the terminal only. */
  notice(message: string): void {
    this.onNotice(message);
  }

  /**
   * For a trouble that may last: a line in the journal and on the terminal, once a minute and not at every tick.
   * @param key what the trouble is with
   * @param againMs Infinity: reported once
   */
  report(key: string, message: string, againMs = AGAIN_MS): void {
    const nowMs = this.clock.monotonicMs();
    if (nowMs - (this.toldAtMs.get(key) ?? Number.NEGATIVE_INFINITY) < againMs) return;
    if (this.toldAtMs.size >= KEYS_MAX) this.toldAtMs.clear();
    this.toldAtMs.set(key, nowMs);
    this.onNotice(message);
    this.raise("trouble", message);
  }

  flush(): void {
    this.journal.flush();
  }

  close(): void {
    this.journal.flush();
    this.journal.close();
  }
}

/** For commands that only look: shows alerts and writes nothing. */
export class SpokenAlerts extends Alerts {
  override raise(): void {}
}

/** Something else stands where the record of a settled task belongs. @param recordAs where it is, relative to the mailbox */
export function tellConflict(alerts: Alerts, id: string, recordAs: string): void {
  alerts.report(
    `conflict:${recordAs}`,
    `something else stands where the record of ${id} belongs; it is kept as ${recordAs}`,
    Number.POSITIVE_INFINITY,
  );
}
