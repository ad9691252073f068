/** A worker process that is our child: how it is started, which files it was offered, what it has reported, and how its death is judged. */
import type { ChildProcess } from "node:child_process";
import { UNSETTLED_MAX } from "../../core/limits.ts";
import { identityOf, ownerPrefix, workerIdOf } from "../../host/identity.ts";
import { pathOfEntry } from "../../host/package.ts";
import { spawn } from "../../host/spawn.ts";
import type { ToSupervisor, ToWorker, WorkerBoot, WorkerProcess } from "../../worker/protocol.ts";
import type { Death } from "./restart-policy.ts";
import type { WorkerInfo } from "./worker-info.ts";

/** Node makes four threads for its compiler and collector; one is enough. */
const FEW_THREADS = "--v8-pool-size=1";
/** Signals that a process does not get by its own fault. */
const FROM_OUTSIDE: ReadonlySet<NodeJS.Signals> = new Set([
  "SIGKILL",
  "SIGTERM",
  "SIGINT",
  "SIGHUP",
]);
/** A process that lived this long was healthy, even if it settled no task (ms). */
const HEALTHY_MS = 10_000;

export type Progress = Extract<ToSupervisor, { type: "progress" }>;

export class ChildWorker implements WorkerInfo {
  readonly id: string;
  readonly tie = "child";
  readonly isHere = true;
  /** The prefix of its leases. */
  readonly ownerPrefix: string;
  slots: number;
  slotsPeak: number;
  readonly threads: number;
  /** The memory limit that allows it only few threads, for people. */
  readonly shortOf: string | undefined;
  /** `leaving`: it is offered nothing more, and ends when its running tasks end. */
  phase: "starting" | "ready" | "leaving" = "starting";
  /** Set for a worker that was started for one file only. */
  readonly onlyFile: string | undefined;
  /** Offered files that it has not finished. */
  readonly offered = new Set<string>();
  private readonly startedMs = performance.now();
  private hasSettled = false;
  /** How many running attempts it found by itself. */
  private extra = 0;
  /** How many attempts have run and wait for the disk. */
  private unsettled = 0;

  /** @throws the system's error when the start time of the process cannot be read now */
  constructor(
    readonly child: WorkerProcess,
    readonly pid: number,
    { slots, threads, shortOf }: Pick<ChildWorker, "slots" | "threads" | "shortOf">,
    onlyFile?: string,
  ) {
    this.slots = slots;
    this.slotsPeak = slots;
    this.threads = threads;
    this.shortOf = shortOf;
    this.onlyFile = onlyFile;
    if (onlyFile !== undefined) this.offered.add(onlyFile);
    this.ownerPrefix = ownerPrefix(identityOf(pid));
    this.id = workerIdOf(this.ownerPrefix);
  }

  /**
   * Starts a process and sends it its orders as a message, because an environment variable cannot hold a text of any size.
   * @param isShort few threads may be made
   * @returns a process without pid when the system refuses; it then emits "error"
   * @throws Error with some codes of the system (E2BIG, ENOMEM)
   */
  static start(this: void, orders: WorkerBoot, isShort: boolean): ChildProcess {
    const flags = isShort ? [...process.execArgv, FEW_THREADS] : process.execArgv;
    const child = spawn(process.execPath, [...flags, pathOfEntry("worker/entry")], {
      // Use its own session: Ctrl-C in a terminal then reaches only the supervisor, which informs its workers.
      detached: true,
      // Output of handlers must not mix with the answers on our stdout.
      stdio: ["ignore", 2, 2, "ipc"],
      env: {
        ...process.env,
        MAILCHUTE_WORKER_BOOT: orders.stateDir,
      },
    });
    if (child.pid !== undefined) child.send(orders, () => {});
    return child;
  }

  /** True when it takes one task after the other and is not about to end. */
  get isStaying(): boolean {
    return this.phase !== "leaving" && this.onlyFile === undefined;
  }

  /** How many files it can be offered now. It is refilled when half empty, to send one message rather than many. */
  room(prefetch: number): number {
    if (this.phase !== "ready" || this.onlyFile !== undefined || this.slots === 0) return 0;
    const held = this.offered.size + this.extra;
    const load = held - Math.min(this.unsettled, UNSETTLED_MAX);
    return load > this.slots + prefetch / 2 ? 0 : Math.max(0, this.slots + prefetch - load);
  }

  /** Lost messages do no harm: a worker looks around by itself, and dead workers are replaced. */
  send(message: ToWorker): void {
    if (this.child.connected) this.child.send(message, () => {});
  }

  noteProgress({ done, extra, unsettled, settled }: Progress): void {
    for (const file of done) this.offered.delete(file);
    this.extra = extra;
    this.unsettled = unsettled;
    if (settled.length > 0) this.hasSettled = true;
  }

  /**
   * @param signal that ended it, if any
   * @param lackedMemory true when it died for lack of memory: its successor would find no more memory now, so it is started later
   */
  deathBy(signal: NodeJS.Signals | null, lackedMemory: boolean): Death {
    if (this.hasSettled || performance.now() - this.startedMs > HEALTHY_MS) return "healthy";
    const wasKilled = signal !== null && FROM_OUTSIDE.has(signal) && !lackedMemory;
    return wasKilled && this.phase !== "starting" ? "killed" : "fruitless";
  }
}
