/** What it means for the pool's tasks that a worker process starts, tells of its progress, or dies. */
import { parseName } from "../core/names.ts";
import type { Telemetry } from "../journal/telemetry.ts";
import { type Alerts, tellConflict } from "./alerts.ts";
import type { Pool, PoolHooks } from "./pool.ts";
import type { PoolWorker } from "./pool-worker.ts";
import type { Selection } from "./selection.ts";
import type { Progress } from "./spawned-worker.ts";
import type { TaskEnds } from "./task-ends.ts";

export interface WorkerNewsParts {
  selection: Selection;
  pool: Pool;
  taskEnds: TaskEnds;
  telemetry: Telemetry;
  alerts: Alerts;
  /** True when this supervisor is ending: then its workers do. */
  isEnding: () => boolean;
  shareSlots: () => void;
  /** Look at `processing/` soon. */
  wantListing: () => void;
  wake: () => void;
}

type Death = Parameters<PoolHooks["onDeath"]>[0];

export class WorkerNews implements PoolHooks {
  private readonly p: WorkerNewsParts;

  constructor(parts: WorkerNewsParts) {
    this.p = parts;
  }

  onStarted(worker: PoolWorker): void {
    this.p.telemetry.note("worker_started", { id: worker.id, pid: worker.pid });
    this.p.shareSlots();
  }

  onUnlike({ id, pid, isSpawned, isElsewhere }: PoolWorker): void {
    let what = "has other settings than these";
    let then = "was started by hand, and goes by its own until it is started anew";
    if (isSpawned) then = "gets no more tasks, ends with what it runs, and is replaced";
    if (isSpawned && isElsewhere === true) {
      what = "was left on another host or in another container";
      then =
        "gets no more tasks; what it held is taken back when it has been silent for lease_ttl_ms";
    }
    this.p.alerts.notice(`worker ${id} ${what} (pid ${pid}): it ${then}`);
  }

  onLeaving({ id, pid }: PoolWorker, signal: string, files: string[]): void {
    if (this.p.isEnding()) return;
    this.p.alerts.notice(
      `worker ${id} (pid ${pid}) was sent ${signal}: it ends with what it runs, and is replaced`,
    );
    this.p.selection.reoffer(files);
    this.onChange();
  }

  onChange(): void {
    this.p.wantListing();
    this.p.wake();
  }

  onProgress(message: Progress): void {
    const { selection, pool, taskEnds } = this.p;
    for (const { file, delayMs, trouble } of message.returned) {
      const id = parseName(file)?.id;
      // What does not name the task's own file may hinder thousands: told once for all of them.
      if (trouble !== undefined && id !== undefined)
        this.p.alerts.report(
          `trouble:${trouble.includes(`${id}@`) ? id : trouble}`,
          `${id} waits, and is tried again ever less often: ${trouble}`,
          Number.POSITIVE_INFINITY,
        );
      const before = [...message.done]
        .map((f) => selection.offeredTask(f))
        .find((t) => t?.id === parseName(file)?.id);
      if (!selection.onReturned(file, delayMs, before)) this.p.wantListing();
    }
    selection.onDone(message.done);
    if (pool.isOversubscribed) this.p.wantListing();
    for (const { id, isCompleted, recordAs } of message.settled) {
      if (recordAs !== undefined) tellConflict(this.p.alerts, id, recordAs);
      taskEnds.noteSettled(id, isCompleted);
    }
    this.p.wake();
  }

  onDeath(death: Death): void {
    if (!this.p.isEnding()) this.tellDeath(death);
    this.p.selection.reoffer(death.files);
    this.p.wantListing();
    this.p.wake();
  }

  private tellDeath({ id, pid, how, isDone, restartInMs, isBreakerOpen }: Death): void {
    const { telemetry, alerts } = this.p;
    const next = restartInMs > 0 ? `; the next one starts in ${restartInMs} ms` : "";
    // It was started for one task, and is through with it.
    if (isDone) return;
    if (pid === 0) alerts.report("worker-start", `a worker process ${how}${next}`);
    else {
      telemetry.note("worker_stopped", { id, pid, error: how });
      alerts.notice(`worker ${id} ended (${how})${next}`);
    }
    if (isBreakerOpen)
      alerts.raise(
        "restart_storm",
        `workers die one after the other without getting anything done (${how})`,
      );
  }
}
