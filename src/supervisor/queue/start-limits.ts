/** Decides whether tasks may start now, and how many: it asks the gates of the pool, and counts starts. */
import { closedPool, type PoolState, type StartFilter } from "../../core/gates.ts";
import { laneOf } from "../../core/waiting-task.ts";
import type { ControlFile } from "../documents/control-file.ts";
import type { Environment } from "../environment/environment.ts";
import type { Lifecycle } from "../environment/lifecycle.ts";
import type { Parts } from "../environment/parts.ts";
import type { DiskLimit } from "./disk-limit.ts";
import type { Queue } from "./queue.ts";

/** How much a part may start. */
export interface StartAllowance {
  /** How many of its own tasks may be in progress at once, without tasks that wait for a retry. */
  slots: number;
  /** How many new tasks it may start. */
  launchesMax: number;
}

/** The limits that may hold back all or some tasks. */
interface Limits {
  readonly control: ControlFile;
  readonly disk: DiskLimit;
  readonly parts: Parts;
  readonly lifecycle: Pick<Lifecycle, "status">;
}

type StartQueue = Pick<Queue, "backlog" | "scanner" | "finishedIds" | "dispatcher" | "pool">;

export class StartLimits {
  /** Monotonic ms. */
  private startedMs = 0;

  /** @param launchesMax how many tasks may be started in total */
  constructor(
    private readonly env: Pick<Environment, "settings">,
    private readonly queue: StartQueue,
    private readonly limits: Limits,
    private readonly launchesMax = Number.POSITIVE_INFINITY,
  ) {}

  /** Starts the wait for the first scan. @param nowMs monotonic */
  start(nowMs: number): void {
    this.startedMs = nowMs;
  }

  /** The tasks that may start; undefined when none may. */
  whichMayStart(nowMs: number): StartFilter | undefined {
    const closed = closedPool(this.pool(nowMs));
    return closed === undefined ? { kind: "all" } : closed.passes;
  }

  /** What the gates of the pool are asked about. */
  pool(nowMs: number): PoolState {
    const { scanner, finishedIds, pool } = this.queue;
    const { control, disk, parts, lifecycle } = this.limits;
    const { paused, paused_at, paused_by, max_workers: slots } = control.current;
    return {
      supervisor: lifecycle.status,
      pid: process.pid,
      control: { paused, paused_at, paused_by, launched: paused ? this.launched() : [] },
      slots: pool.workers.hasOthers ? null : slots,
      shortage: disk.shortage,
      isMailboxOn: this.env.settings.mailbox_enabled,
      isRead: scanner.isComplete && finishedIds.isComplete,
      upMs: nowMs - this.startedMs,
      replan: parts.replan(),
    };
  }

  /** The tasks that were about to start when the pool was paused, and have not begun. The pause applies to their next run. */
  private launched(): readonly string[] {
    const { control, parts } = this.limits;
    // Until the parts have looked, it is not known which tasks have begun.
    if (!parts.isStarted) return [];
    const unbegun = parts.unbegun();
    const launched = control.current.launched.filter((id) => unbegun.includes(id));
    if (launched.length < control.current.launched.length) control.change({ launched });
    return launched;
  }

  /** Whether the task waits for its time, or for a gate. */
  isPutOff(id: string): boolean {
    const { backlog } = this.queue;
    const state = backlog.stateOfId(id);
    if (state !== "runnable") return state === "delayed";
    const task = backlog.get(id);
    return task !== undefined && !this.limits.parts.mayStart(laneOf(task));
  }

  /** All parts together. */
  get parts(): Parts {
    return this.limits.parts;
  }

  /** How many more tasks may start. */
  get left(): number {
    return Math.max(0, this.launchesMax - this.queue.dispatcher.launchedCount);
  }

  /** @returns how much a part may start; undefined when it may start nothing */
  allowance(nowMs: number): StartAllowance | undefined {
    const closed = closedPool(this.pool(nowMs));
    if (closed !== undefined && closed.code !== "replan") return undefined;
    // Only workers that are ready count: a task that is begun must run at once and not wait for a starting worker.
    return { slots: this.queue.pool.workers.readySlots, launchesMax: this.left };
  }
}
