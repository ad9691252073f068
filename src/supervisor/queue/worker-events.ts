/** Updates the pool's tasks when a worker process starts, reports progress, or dies. */
import { parseName } from "../../core/names.ts";
import { markOfPackage } from "../../host/package.ts";
import { tellConflict } from "../../journal/alerts.ts";
import type { Environment } from "../environment/environment.ts";
import type { Lifecycle } from "../environment/lifecycle.ts";
import type { Progress } from "../pool/child-worker.ts";
import type { Pool, WorkerDeath } from "../pool/pool.ts";
import type { Shortages } from "../pool/shortages.ts";
import { roomText } from "../pool/thread-budget.ts";
import type { WorkerInfo } from "../pool/worker-info.ts";
import type { AcceptedTasks } from "./accepted-tasks.ts";
import type { ProcessingTray } from "./processing-tray.ts";
import type { SlotSharing } from "./slot-sharing.ts";

/** Advice when no worker process can be started: its files are gone, or the system allows no more processes and threads. */
const INSTALL =
  "its program files are gone: install mailchute again, then mailchute stop and mailchute run";
const RAISE =
  "raise the limit of processes and threads (ulimit -u, TasksMax=, --pids-limit), or run less at once; mailchute doctor says which it is";
/** Advice when the system gives no more memory. */
const RAISE_MEMORY =
  "raise the limit of memory (ulimit -v, MemoryMax=, --memory; memory.max), or run less at once (workers, processes); mailchute doctor says which it is";

const OTHER_SETTINGS = [
  "has other settings than these",
  "gets no more tasks, ends with what it runs, and is replaced",
] as const;
const LEFT_ELSEWHERE = [
  "was left on another host or in another container",
  "gets no more tasks; its tasks are taken back when it has shown no sign of life for lease_ttl_ms",
] as const;

export interface WorkerEventsParts {
  pool: Pool;
  accepted: AcceptedTasks;
  processing: ProcessingTray;
  shortages: Shortages;
  slots: SlotSharing;
}

export class WorkerEvents {
  private readonly deps: WorkerEventsParts;

  constructor(
    private readonly env: Environment,
    private readonly lifecycle: Lifecycle,
    parts: WorkerEventsParts,
  ) {
    this.deps = parts;
    const { facts } = parts.pool;
    facts.on("worker:started", (worker) => this.onStarted(worker));
    facts.on("worker:progress", (message) => this.onProgress(message));
    facts.on("worker:leaving", (worker, signal, files) => this.onLeaving(worker, signal, files));
    facts.on("worker:died", (death) => this.onDeath(death));
    facts.on("worker:odd", (worker, why) =>
      why === "hangs" ? this.onHang(worker) : this.onUnlike(worker),
    );
    facts.on("worker:changed", () => this.onChange());
  }

  private onStarted(worker: WorkerInfo): void {
    this.env.telemetry.note("worker_started", { id: worker.id, pid: worker.pid });
    this.deps.shortages.end("worker-start");
    this.tellShortage();
    this.deps.slots.share();
  }

  /** Reports that a worker is slower than it could be, once for each number of threads. Nothing else is wrong then. */
  private tellShortage(): void {
    const short = this.deps.pool.findShort();
    if (short === undefined) {
      this.deps.shortages.end("threads");
      return;
    }
    const { threads, wanted, shortOf } = short;
    const why =
      shortOf === undefined
        ? `few processes and threads may be made${roomText()}`
        : memoryText(shortOf);
    const what = `${why}: a worker process has ${threads} ${threads === 1 ? "thread" : "threads"} for the disk, not ${wanted}`;
    this.deps.shortages.note("threads", what, shortOf === undefined ? RAISE : RAISE_MEMORY);
    this.env.alerts.report(`threads:${threads}`, what, Number.POSITIVE_INFINITY);
  }

  private onUnlike({ id, pid, tie }: WorkerInfo): void {
    const [what, then] = tie === "elsewhere" ? LEFT_ELSEWHERE : OTHER_SETTINGS;
    const fate =
      tie === "by hand" ? "was started by hand, and keeps its own until you restart it" : then;
    this.env.alerts.notice(`worker ${id} ${what} (pid ${pid}): it ${fate}`);
  }

  private onHang({ id, pid }: WorkerInfo): void {
    const { alerts, settings } = this.env;
    const when = settings.mailbox_enabled ? "" : " when mailbox_enabled is true";
    alerts.report(
      `hangs:${id}`,
      `worker ${id} (pid ${pid}) was alive but had not moved for ${settings.stall_ms} ms: it was ended, and its tasks are taken back${when}`,
      Number.POSITIVE_INFINITY,
    );
  }

  private onLeaving({ id, pid }: WorkerInfo, signal: string, files: string[]): void {
    if (this.lifecycle.isEnding) return;
    this.env.alerts.notice(
      `worker ${id} (pid ${pid}) was sent ${signal}: it ends with what it runs, and is replaced`,
    );
    this.deps.processing.reoffer(files);
    this.onChange();
  }

  private onChange(): void {
    this.look();
  }

  /** Makes the next tick look at `processing/`. */
  private look(): void {
    this.env.facts.emit("processing:changed");
  }

  private onProgress(message: Progress): void {
    const { accepted, pool, processing } = this.deps;
    const { facts } = this.env;
    for (const { file, delayMs, trouble } of message.returned) {
      const id = parseName(file)?.id;
      if (id !== undefined) {
        if (trouble === undefined) this.deps.shortages.endTask(id);
        else this.deps.shortages.noteTask(id, trouble, delayMs);
      }
      // A trouble that does not name the task's own file may hinder thousands of tasks: report it once for all of them.
      if (trouble !== undefined && id !== undefined)
        this.env.alerts.report(
          `trouble:${trouble.includes(`${id}@`) ? id : trouble}`,
          `${id} waits, and is tried again with a growing delay: ${trouble}`,
          Number.POSITIVE_INFINITY,
        );
      const before = [...message.done]
        .map((f) => accepted.offered(f))
        .find((t) => t?.id === parseName(file)?.id);
      if (id !== undefined) facts.emit("task:begun", id);
      if (!processing.putBack(file, delayMs, before)) this.look();
    }
    for (const file of message.done) accepted.take(file);
    if (pool.isOversubscribed) this.look();
    for (const { id, isCompleted, batch, recordAs } of message.settled) {
      if (recordAs !== undefined) tellConflict(this.env.alerts, id, recordAs);
      this.deps.shortages.endTask(id);
      facts.emit("task:settled", id, isCompleted, batch);
    }
    this.env.wake();
  }

  private onDeath(death: WorkerDeath): void {
    if (!this.lifecycle.isEnding) this.tellDeath(death);
    this.deps.processing.reoffer([...(death.worker?.offered ?? [])]);
    this.look();
  }

  private tellDeath(death: WorkerDeath): void {
    const { worker, stage, how, shortOf, restartInMs, isBreakerOpen } = death;
    const { telemetry, alerts } = this.env;
    const { shortages } = this.deps;
    const next = restartInMs > 0 ? `; the next one starts in ${restartInMs} ms` : "";
    // It was started for one task, which has ended.
    if (stage === "done") return;
    if (worker === undefined || stage === "unborn") {
      const what = stage === "unborn" ? `ended before it was ready (${how})` : how;
      const isMemory = shortOf !== undefined || how.includes("ENOMEM");
      const why = shortOf === undefined ? roomText() : `: ${memoryText(shortOf)}`;
      const message = `a worker process ${what}${why}`;
      const todo = isMemory ? RAISE_MEMORY : markOfPackage() === undefined ? INSTALL : RAISE;
      shortages.note("worker-start", `no worker can be started: ${message}`, todo);
      alerts.report("worker-start", `${message}${next}`);
    } else {
      const { id, pid } = worker;
      telemetry.note("worker_stopped", { id, pid, error: how });
      alerts.notice(`worker ${id} ended (${how})${next}`);
      if (shortOf !== undefined)
        this.tellMemory(`a worker process died because ${memoryText(shortOf)}`);
    }
    if (isBreakerOpen)
      alerts.raise(
        "restart_storm",
        `workers die one after the other without getting anything done (${how})`,
      );
  }

  private tellMemory(what: string): void {
    this.deps.shortages.noteDeath("memory", what, RAISE_MEMORY);
    this.env.alerts.report("memory", `${what}; the tasks it ran are given back`);
  }
}

function memoryText(shortOf: string): string {
  return `memory is short (${shortOf})`;
}
