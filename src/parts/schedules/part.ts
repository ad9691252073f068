/** Submits the tasks of schedules while a supervisor runs. In a tree without schedules it only checks whether there are any. */
import { messageOf } from "../../core/errors.ts";
import { statOf } from "../../host/regular-file.ts";
import type { Part, WorkSource } from "../../supervisor/environment/part.ts";
import { NEVER, type Tick } from "../../supervisor/environment/service.ts";
import type { MakePart, PartHost } from "../../supervisor/part.ts";
import type { Scheduler } from "./scheduler.ts";
import { schedulesDir } from "./schedules-dir.ts";

/** How often the files are read (ms). */
const LOOK_MS = 1000;

class SchedulesPart implements Part, WorkSource {
  readonly ports = { work: this };
  private readonly env: PartHost["env"];
  private readonly limits: PartHost["limits"];
  private scheduler: Scheduler | undefined;
  private busy: Promise<void> | undefined;
  private lookAtMs = 0;
  private isThere: boolean;
  /** False until the tasks that were due at the start are submitted. */
  private hasLooked = false;
  /** No time after this one fires (epoch ms): a run that makes one pass would not end while a short schedule goes on. */
  private untilMs = Number.POSITIVE_INFINITY;

  constructor({ env, limits }: Pick<PartHost, "env" | "limits">) {
    this.env = env;
    this.limits = limits;
    this.isThere = this.look();
  }

  /** Submits nothing: the first tick does, because a dry run has no ticks and must make no file. */
  async start(isOnePass: boolean): Promise<void> {
    if (isOnePass) this.untilMs = this.env.trays.clock.wallMs();
  }

  work({ nowMs }: Tick): void {
    if (this.busy !== undefined || nowMs < this.lookAtMs) return;
    this.isThere = this.look();
    this.lookAtMs = nowMs + LOOK_MS;
    if (!this.isThere) return;
    this.busy = this.fire(nowMs).finally(() => {
      this.busy = undefined;
      this.hasLooked = true;
      this.env.wake();
    });
  }

  nextMs(): number {
    return this.isThere && this.busy === undefined ? this.lookAtMs : NEVER;
  }

  async finish(): Promise<void> {
    await this.busy;
  }

  canStart(): boolean {
    return false;
  }

  isBusy(): boolean {
    return this.busy !== undefined || (this.isThere && !this.hasLooked);
  }

  isIdle(): boolean {
    return !this.isBusy();
  }

  private async fire(nowMs: number): Promise<void> {
    try {
      if (this.scheduler === undefined) {
        const { Scheduler: Opened } = await import("./scheduler.ts");
        this.scheduler = new Opened(this.env, () => this.limits.parts.isIdleBut(this));
      }
      await this.scheduler.look(this.untilMs);
      const leftMs = this.scheduler.nextMs - this.env.trays.clock.wallMs();
      // A time in the past waits for the end of an earlier task.
      if (leftMs > 0) this.lookAtMs = Math.min(this.lookAtMs, nowMs + leftMs);
    } catch (error) {
      this.env.alerts.report("schedules", `cannot read the schedules: ${messageOf(error)}`);
    }
  }

  private look(): boolean {
    if (Object.keys(this.env.settings.schedules).length > 0) return true;
    try {
      return statOf(schedulesDir(this.env.tree.dir)) !== undefined;
    } catch {
      // The scheduler reports why the directory cannot be read.
      return true;
    }
  }
}

export const schedules: MakePart = (host) => new SchedulesPart(host);
