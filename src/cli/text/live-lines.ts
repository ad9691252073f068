/**
 * Prints one line for each event of a pool, for the person who runs it. It follows the journal of events, so the supervisor and its
 * workers do no extra work. It leaves out failures, because the supervisor reports them itself.
 */
import { parseObject } from "../../core/json-object.ts";
import { statOf } from "../../host/regular-file.ts";
import { JournalTail } from "../../journal/tail.ts";
import { duration, safe } from "../../text/render.ts";

const LOOK_MS = 200;
/** How many lines a person can read in `AGAIN_MS`; further events are only counted. */
const LINES_MAX = 20;
const AGAIN_MS = 1000;

type Told = "started" | "completed" | "retry_scheduled" | "released" | "held" | "cancelled";

/** The words for events that are only counted. */
const COUNTED: Readonly<Record<Told, string>> = {
  started: "started",
  completed: "completed",
  retry_scheduled: "to be tried again",
  released: "given back",
  held: "held back",
  cancelled: "cancelled",
};
const EVENT = /^\{"event":"(started|completed|retry_scheduled|released|held|cancelled)",/;

export class LiveLines {
  private readonly tail: JournalTail;
  private readonly timer: NodeJS.Timeout;
  private readonly untold = new Map<Told, number>();
  private left = LINES_MAX;
  private refilledAtMs = performance.now();

  /** Starts with the events that come from now on. */
  constructor(
    eventsPath: string,
    private readonly say: (line: string) => void,
  ) {
    const there = statOf(eventsPath);
    this.tail = new JournalTail(eventsPath, there?.size, there?.ino);
    this.timer = setInterval(() => this.look(false), LOOK_MS);
    this.timer.unref();
  }

  /** Prints the events that came until now, and stops. */
  close(): void {
    clearInterval(this.timer);
    this.look(true);
    this.tail.close();
  }

  private look(isLast: boolean): void {
    try {
      for (let lines = this.tail.nextLines(); lines.length > 0; lines = this.tail.nextLines())
        for (const line of lines) this.take(line);
    } catch {
      // The journal cannot be read now: the supervisor reports that, and the next look may succeed.
    }
    const nowMs = performance.now();
    if (!isLast && nowMs - this.refilledAtMs < AGAIN_MS) return;
    this.refilledAtMs = nowMs;
    this.left = LINES_MAX;
    if (this.untold.size === 0) return;
    const sums = [...this.untold].map(([event, count]) => `${count} ${COUNTED[event]}`);
    this.say(`and ${sums.join(", ")}`);
    this.untold.clear();
  }

  private take(line: string): void {
    const event = EVENT.exec(line)?.[1] as Told | undefined;
    if (event === undefined) return;
    if (this.left === 0) {
      // The supervisor reports failures, so such a line need not be parsed.
      if (event !== "completed" || !line.includes('"status":"failed"'))
        this.untold.set(event, (this.untold.get(event) ?? 0) + 1);
      return;
    }
    const record = parseObject(line);
    const text = record === undefined ? undefined : describeEvent(event, record);
    if (text === undefined) return;
    this.left--;
    this.say(text);
  }
}

/** Undefined for events that are reported elsewhere. */
function describeEvent(event: Told, record: Record<string, unknown>): string | undefined {
  const id = safe(record["task_id"]);
  const reason = typeof record["error"] === "string" ? `: ${safe(record["error"])}` : "";
  const number = (field: string): number | undefined =>
    typeof record[field] === "number" ? record[field] : undefined;
  switch (event) {
    case "started": {
      // The run was on another machine, and has ended by now.
      if (record["machine"] !== undefined) return undefined;
      const attempt = number("attempt") ?? 1;
      return attempt > 1 ? `${id} started, run ${attempt}` : `${id} started`;
    }
    case "completed": {
      if (record["status"] === "failed") return undefined;
      const ms = number("duration_ms");
      return ms === undefined ? `${id} completed` : `${id} completed after ${duration(ms)}`;
    }
    case "retry_scheduled":
      return `${id} failed and runs again in ${duration(number("delay_ms") ?? 0)}${reason}`;
    case "released":
      return `${id} was given back and waits again${reason}`;
    case "held":
      return `${id} is held back${reason}`;
    case "cancelled":
      return `${id} was cancelled${reason}`;
  }
}
