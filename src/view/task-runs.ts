/** The runs of one task, from the lines of the journal about it. Pure. */
import { leaseOfLine } from "../core/names.ts";
import { textOf } from "./scan.ts";
import { numberIn } from "./task-rows.ts";

type Line = Readonly<Record<string, unknown>>;

export interface TaskRun {
  /** From 1; several runs have the same number when they used up no attempt. */
  attempt: number;
  /** Its lease, as records and costs have it. */
  lease: string;
  /** The process that ran it. */
  worker: string;
  agent: string;
  /** How long the task waited before this run (ms): in the inbox, or since the previous run; null when it is not known. */
  waited_ms: number | null;
  began_ms: number;
  /** Null while it runs. */
  ended_ms: number | null;
  /** `completed`, `failed`, or the event that put the task back; null while the run lasts. */
  end: string | null;
  /** What its programs used, as far as was seen; null when that is not known. */
  cpu_ms: number | null;
  peak_memory_bytes: number | null;
  /** Why it failed or was put back; "" when no reason is known. */
  why: string;
}

/** After these events the task waits again, or another process has it. */
const PUT_BACK: ReadonlySet<string> = new Set([
  "retry_scheduled",
  "released",
  "held",
  "reclaimed",
  "fenced",
]);

/** @param events of the task, the latest first. @returns the first run first */
export function runsOf(events: readonly Line[]): TaskRun[] {
  const runs = new Map<string, TaskRun>();
  let waitsSinceMs: number | null = null;
  for (const line of events.toReversed()) {
    const { event, t: atMs, queue_ms: queuedMs } = line;
    if (typeof atMs !== "number" || typeof event !== "string") continue;
    const lease = leaseOfLine(line);
    const run = runs.get(lease);
    if (event === "selected" && typeof queuedMs === "number") waitsSinceMs = atMs - queuedMs;
    else if (event === "started" && run === undefined) {
      runs.set(lease, {
        attempt: Number(line["attempt"]) || 0,
        lease,
        worker: textOf(line["worker"]),
        agent: textOf(line["agent_id"]),
        waited_ms: waitsSinceMs === null ? null : Math.max(0, atMs - waitsSinceMs),
        began_ms: atMs,
        ended_ms: null,
        end: null,
        cpu_ms: null,
        peak_memory_bytes: null,
        why: "",
      });
    } else if (run !== undefined && run.end === null) {
      if (event === "failed") run.why = whyOf(line);
      const isEnd = event === "completed";
      if (!isEnd && !PUT_BACK.has(event)) continue;
      run.ended_ms = atMs;
      run.cpu_ms = numberIn(line, "cpu_ms");
      run.peak_memory_bytes = numberIn(line, "peak_memory_bytes");
      run.end = isEnd ? textOf(line["status"], "completed") : event;
      run.why = whyOf(line) || run.why;
      waitsSinceMs = atMs;
    }
  }
  return [...runs.values()];
}

function whyOf({ error, reason }: Line): string {
  if (typeof error === "string") return error;
  return typeof reason === "string" ? `its worker was ${reason}` : "";
}
