/** Reports problems to people, in `alerts.jsonl` and on the terminal. */
import type { Clock } from "../core/clock.ts";
import { isoTime } from "../core/iso-time.ts";
import { visible } from "../core/visible.ts";
import { Journal } from "./journal.ts";

/** A problem that lasts is reported once in this time (ms). */
const AGAIN_MS = 60_000;
const KEYS_MAX = 1000;
/** The terminal shows at most this many alerts of one kind in `AGAIN_MS`. Further ones are only in the journal. */
const TOLD_MAX = 20;

export class Alerts {
  private readonly journal: Journal;
  private readonly toldAtMs = new Map<string, number>();
  /** For each kind of alert: when its period began (monotonic ms), and how many alerts came since. */
  private readonly recent = new Map<string, { sinceMs: number; count: number }>();

  constructor(
    path: string,
    private readonly clock: Clock,
    private readonly onNotice: (notice: string) => void,
  ) {
    this.journal = new Journal(path, true);
  }

  /** Writes a line to the journal only. */
  raise(kind: string, message: string): void {
    const t = this.clock.wallMs();
    this.journal.append(
      JSON.stringify({ alert: kind, message: visible(message), timestamp: isoTime(t), t }),
    );
    this.journal.flush();
  }

  /**
   * Writes a line to the journal. Also shows it on the terminal, unless many of this kind were shown recently.
   * @param told makes the text for the terminal; default: `message`
   */
  alert(kind: string, message: string, told: () => string = () => message): void {
    if (this.mayTell(kind)) this.onNotice(told());
    this.raise(kind, message);
  }

  /** Counts an alert of this kind. @returns whether to show it. A notice replaces the first alert above the limit */
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
        `many alerts of one kind (${kind}): more are not shown here for a while; \`mailchute ls --state-is failed\` names what failed`,
      );
    return recent.count <= TOLD_MAX;
  }

  /** Shows a line on the terminal only. */
  notice(message: string): void {
    this.onNotice(message);
  }

  /**
   * Reports a problem that may last, in the journal and on the terminal. It appears once a minute and not at every tick.
   * @param key identifies the problem
   * @param againMs when it is reported again; Infinity = never
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

/** For commands that only read: shows alerts and writes no file. */
export class SpokenAlerts extends Alerts {
  override raise(): void {}
}

/** Reports that another file has the name of a task's record. @param recordAs the record's path, relative to the mailbox */
export function tellConflict(alerts: Alerts, id: string, recordAs: string): void {
  alerts.report(
    `conflict:${recordAs}`,
    `another file has the name of the record of ${id}; the record is kept as ${recordAs}`,
    Number.POSITIVE_INFINITY,
  );
}
