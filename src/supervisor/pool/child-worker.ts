/** A worker process that is our child: how it is started, what it was offered and has told, what its death says of it. */
import { type ChildProcess, spawn } from "node:child_process";
import { UNSETTLED_MAX } from "../../core/limits.ts";
import { identityOf, ownerPrefix, workerIdOf } from "../../host/identity.ts";
import { pathOfEntry } from "../../host/package.ts";
import type { ToSupervisor, ToWorker, WorkerBoot } from "../../worker/protocol.ts";
import type { Death } from "./restart-policy.ts";
import type { WorkerInfo } from "./worker-info.ts";

/** Node makes four threads for its compiler and collector; one does. */
const FEW_THREADS = "--v8-pool-size=1";
/** Signals that a process does not get by a fault of its own. */
const FROM_OUTSIDE: ReadonlySet<NodeJS.Signals> = new Set([
  "SIGKILL",
  "SIGTERM",
  "SIGINT",
  "SIGHUP",
]);
/** A process that lived this long was healthy, even if it settled nothing (ms). */
const HEALTHY_MS = 10_000;

export type Progress = Extract<ToSupervisor, { type: "progress" }>;

export class ChildWorker implements WorkerInfo {
  readonly id: string;
  readonly pid: number;
  readonly tie = "child";
  /** What its leases begin with. */
  readonly ownerPrefix: string;
  readonly child: ChildProcess;
  slots: number;
  slotsPeak: number;
  readonly threads: number;
  /** The memory for want of which it has few threads, for people. */
  readonly shortOf: string | undefined;
  /** `leaving`: it is offered nothing more, and ends with what it runs. */
  phase: "starting" | "ready" | "leaving" = "starting";
  /** It was started for this one file. */
  readonly onlyFile: string | undefined;
  /** Offered files it is not through with. */
  readonly offered = new Set<string>();
  private readonly startedMs = performance.now();
  private hasSettled = false;
  /** Attempts it found by itself. */
  private extra = 0;
  /** Attempts that have run and wait for the disk. */
  private unsettled = 0;

  /** @throws what the system says when it cannot tell now when the process was started */
  constructor(
    child: ChildProcess,
    pid: number,
    { slots, threads, shortOf }: Pick<ChildWorker, "slots" | "threads" | "shortOf">,
    onlyFile?: string,
  ) {
    this.child = child;
    this.pid = pid;
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
   * Starts a process and hands it its orders, which no variable of the environment could hold at any size.
   * @param isShort few threads may be made
   * @returns one without pid when the system refuses, which then emits "error"
   * @throws Error with some codes of the system (E2BIG, ENOMEM)
   */
  static start(this: void, orders: WorkerBoot, isShort: boolean): ChildProcess {
    const flags = isShort ? [...process.execArgv, FEW_THREADS] : process.execArgv;
    const child = spawn(process.execPath, [...flags, pathOfEntry("worker/entry")], {
      // A session of its own: Ctrl-C in a terminal is for the supervisor, who then tells its workers.
      detached: true,
      // What handlers print must not mix with the answers on our stdout.
      stdio: ["ignore", 2, 2, "ipc"],
      env: {
        ...process.env,
        MAILCHUTE_WORKER_BOOT: orders.stateDir,
      },
    });
    if (child.pid !== undefined) child.send(orders, () => {});
    return child;
  }

  /** It takes one task after the other, and will. */
  get isStaying(): boolean {
    return this.phase !== "leaving" && this.onlyFile === undefined;
  }

  /** How much it can be offered now. Refilled from half empty, in one message rather than in many. */
  room(prefetch: number): number {
    if (this.phase !== "ready" || this.onlyFile !== undefined || this.slots === 0) return 0;
    const held = this.offered.size + this.extra;
    const load = held - Math.min(this.unsettled, UNSETTLED_MAX);
    return load > this.slots + prefetch / 2 ? 0 : Math.max(0, this.slots + prefetch - load);
  }

  /** Lost messages do no harm: a worker looks around by itself, and the dead are replaced. */
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
   * @param signal by which it ended, if any
   * @param lackedMemory of which there will be no more for its successor: that one does not come soon
   */
  deathBy(signal: NodeJS.Signals | null, lackedMemory: boolean): Death {
    if (this.hasSettled || performance.now() - this.startedMs > HEALTHY_MS) return "healthy";
    const wasKilled = signal !== null && FROM_OUTSIDE.has(signal) && !lackedMemory;
    return wasKilled && this.phase !== "starting" ? "killed" : "fruitless";
  }
}
