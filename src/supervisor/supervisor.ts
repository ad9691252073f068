/**
 * The supervisor: one tick that looks, selects, steers and takes back. An event (a file, a message, a death) only schedules a tick.
 * The tick calls the services of `assemble.ts` one after the other; each decides from the directory, in bounded pieces.
 */
import { messageOf } from "../core/errors.ts";
import type { Settings } from "../core/settings.ts";
import type { StateTree } from "../core/state-tree.ts";
import { systemClock } from "../host/system-clock.ts";
import type { MakeFollow } from "../mailbox/files/trays.ts";
import { assemble, type Services } from "./assemble.ts";
import { type Environment, openEnvironment } from "./environment/environment.ts";
import { Lifecycle } from "./environment/lifecycle.ts";
import type { RunProgress, RunSummary, SupervisorOptions } from "./environment/options.ts";
import { NEVER, type Tick } from "./environment/service.ts";
import type { MakePart } from "./part.ts";
import { stopLimitMs } from "./shutdown.ts";
import { TickTimer } from "./tick-timer.ts";

export type {
  RunProgress,
  RunStart,
  RunSummary,
  SupervisorOptions,
} from "./environment/options.ts";

export class Supervisor {
  readonly tree: StateTree;
  readonly settings: Settings;
  private readonly isDryRun: boolean;
  private readonly env: Environment;
  private readonly lifecycle: Lifecycle;
  private readonly services: Services;
  private readonly timer: TickTimer;

  /** @throws ErrMailboxDir when the state tree cannot be used */
  constructor(
    options: SupervisorOptions,
    parts: readonly MakePart[] = [],
    makeFollow?: MakeFollow,
  ) {
    const { tree, settings } = options;
    this.tree = tree;
    this.settings = settings;
    this.isDryRun = options.dryRun === true;
    this.timer = new TickTimer(
      systemClock,
      () => this.tick(),
      (error) => this.env.alerts.report("tick", `unexpected: ${messageOf(error)}`),
    );
    this.lifecycle = new Lifecycle(() => this.services.pool.hurry(stopLimitMs(settings)));
    this.env = openEnvironment(options, () => this.timer.wake(), makeFollow);
    this.services = assemble(this.env, options, this.lifecycle, parts);
  }

  /**
   * Runs until it is drained, stopped or loses its lock.
   * @throws ErrSupervisorRunning when another live supervisor owns the tree; ErrIo when its document cannot be written
   */
  async run(): Promise<RunSummary> {
    const { startup, shutdown, report, ordered } = this.services;
    if (this.isDryRun) {
      // Stop the timer, because a tick would start workers.
      this.timer.stop();
      return report.dryRun();
    }
    await startup.run();
    const endedBy = await this.lifecycle.ended;
    this.timer.stop();
    await shutdown.run(endedBy, ordered);
    return report.summary(endedBy);
  }

  /** The progress of the run. */
  progress(): RunProgress {
    return this.services.report.progress();
  }

  /** Asks it to end: after running tasks have ended (`drain`), or after giving them back. A second call hurries the first. */
  stop(drain: boolean): void {
    this.lifecycle.ask(drain);
  }

  /** Starts only landings, reviews and fixes of completed work from now on, for at most `until_grace_ms`, then ends as `stop(true)` does. */
  finish(): void {
    this.lifecycle.finishWork(this.env.trays.clock.monotonicMs() + this.settings.until_grace_ms);
    this.timer.wake();
  }

  /** Calls all services in order, then schedules the next tick at the earliest of their times. */
  private tick(): void {
    if (this.lifecycle.isEnding) return;
    const nowMs = this.env.trays.clock.monotonicMs();
    const tick: Tick = { nowMs, dueMs: nowMs };
    for (const service of this.services.ordered) service.work(tick);
    if (this.lifecycle.isEnding) return;
    let nextMs = NEVER;
    for (const service of this.services.ordered) nextMs = Math.min(nextMs, service.nextMs(nowMs));
    if (nextMs <= nowMs) this.timer.wake();
    else this.timer.sleepUntil(nextMs);
  }
}
