/**
 * The supervisor: one tick that looks, selects, steers and takes back. Everything from outside (files, messages, deaths)
 * only makes a tick due; what is done is decided there, from the directory, in bounded pieces, by the services of
 * `assemble.ts`, one after the other.
 */
import { messageOf } from "../core/errors.ts";
import type { Settings } from "../core/settings.ts";
import type { StateTree } from "../core/state-tree.ts";
import { readVersion } from "../host/package.ts";
import { systemClock } from "../host/system-clock.ts";
import { assemble, type Services } from "./assemble.ts";
import { type Environment, openEnvironment } from "./environment/environment.ts";
import type { EndReason } from "./environment/lifecycle.ts";
import type { RunSummary, SupervisorOptions } from "./environment/options.ts";
import type { Tick } from "./environment/service.ts";
import type { MakePart } from "./part.ts";
import { findBlockedTasks } from "./status/blocked-tasks.ts";
import { reportOf } from "./status/status-writer.ts";
import { TickTimer } from "./tick-timer.ts";

export type { RunStart, RunSummary, SupervisorOptions } from "./environment/options.ts";

/** Time for parts to do what follows from the last results (ms); what is left is done at the next start. */
const PARTS_FINISH_MS = 3000;
/** How often commands are looked at while the workers end (ms). */
const COMMANDS_LOOK_MS = 200;
const FAR = Number.POSITIVE_INFINITY;

export class Supervisor {
  readonly tree: StateTree;
  readonly settings: Settings;
  private readonly o: SupervisorOptions;
  private readonly env: Environment;
  private readonly s: Services;
  private readonly timer: TickTimer;

  /** @throws ErrMailboxDir when the state tree cannot be used */
  constructor(options: SupervisorOptions, parts: readonly MakePart[] = []) {
    const { tree, settings } = options;
    this.o = options;
    this.tree = tree;
    this.settings = settings;
    this.timer = new TickTimer(
      systemClock,
      () => this.tick(),
      (error) => this.env.alerts.report("tick", `unexpected: ${messageOf(error)}`),
    );
    this.env = openEnvironment(options, () => this.timer.wake());
    this.s = assemble(this.env, options, parts, (drain) => this.stop(drain));
  }

  /**
   * Runs until it is drained, stopped or loses its lock.
   * @throws ErrSupervisorRunning when another live supervisor owns the tree; ErrIo when it cannot say so itself
   */
  async run(): Promise<RunSummary> {
    if (this.o.dryRun === true) return this.dryRun();
    const { env, s } = this;
    await s.status.introduce();
    s.limits.start(env.clock.monotonicMs());
    env.telemetry.note("supervisor_started", { pid: process.pid, version: readVersion() });
    this.applyWhatHolds();
    s.queue.pool.survey();
    s.queue.pool.ensure();
    if (!env.isOn)
      env.alerts.notice("the task mailbox is off (mailbox_enabled: false); commands are taken");
    s.slots.share();
    await s.poll.recoverAtStart();
    s.watchers.start();
    s.queue.scanner.hint(undefined);
    void s.parts.start(this.o.once === true).then(env.wake);
    env.wake();
    const endedBy = await env.lifecycle.ended;
    this.timer.stop();
    await this.shutDown(endedBy);
    return this.summary(endedBy);
  }

  /** Asks it to end: after what runs has ended (`drain`), or after giving it back. A second call hurries the first. */
  stop(drain: boolean): void {
    if (this.env.lifecycle.ask(drain)) this.s.queue.pool.hurry(this.stopLimitMs);
  }

  /** All services in their order; then the first of their times is the next tick's. */
  private tick(): void {
    const { clock, lifecycle } = this.env;
    if (lifecycle.endedBy !== undefined) return;
    const nowMs = clock.monotonicMs();
    const tick: Tick = { nowMs, dueMs: nowMs };
    for (const service of this.s.ordered) service.work(tick);
    if (lifecycle.endedBy !== undefined) return;
    let nextMs = FAR;
    for (const service of this.s.ordered) nextMs = Math.min(nextMs, service.nextMs(nowMs));
    if (nextMs <= nowMs) this.timer.wake();
    else this.timer.sleepUntil(nextMs);
  }

  // ── the start ───────────────────────────────────────────────────────────────────────────────────────────────────

  /** What commands have said before this start is in force still, and may surprise the person who started it. */
  private applyWhatHolds(): void {
    const { control, ownership } = this.s;
    const { pool } = this.s.queue;
    if (this.o.paused === true && !control.current.paused)
      control.change({
        paused: true,
        paused_at: ownership.startedAt,
        paused_by: "run --paused",
      });
    const remembered = this.o.once === true ? undefined : this.rememberedSlots();
    if (remembered !== undefined) pool.setMaxSlots(remembered);
    this.o.onStart?.({
      slots: remembered ?? this.settings.workers,
      areSlotsRemembered: remembered !== undefined,
    });
    const { paused, paused_at, paused_by, replan_paused } = control.current;
    const { alerts } = this.env;
    if (paused)
      alerts.notice(
        `paused since ${paused_at ?? "an unknown time"} (${paused_by ?? "unknown"}): nothing starts before \`mailchute resume\``,
      );
    if (replan_paused) alerts.notice("replanning: other nodes wait until the planner has ended");
  }

  /** What `set-workers` has said before this start, unless this run was given another number than it overrode. */
  private rememberedSlots(): number | undefined {
    const { control } = this.s;
    const { max_workers: slots, max_workers_over: over } = control.current;
    if (slots === null) return undefined;
    const isNewer = this.o.areWorkersGiven === true && over !== this.settings.workers;
    if (!isNewer || over === null) return slots;
    control.change({ max_workers: null, max_workers_by: null, max_workers_over: null });
    return undefined;
  }

  // ── the end ─────────────────────────────────────────────────────────────────────────────────────────────────────

  private async shutDown(endedBy: EndReason): Promise<void> {
    const { env, s } = this;
    s.watchers.stop();
    s.cleaner.close();
    s.queue.finishedIds.close();
    if (endedBy === "lock-lost") s.queue.pool.abandon();
    else {
      if (env.lifecycle.status === "running") env.lifecycle.status = "draining";
      s.status.tell();
      await this.closePool();
      if (env.isOn) await s.rescuer.round(s.rescuer.list());
      await s.rescuer.idle();
      await s.parts.finish(PARTS_FINISH_MS);
      await s.rejections.idle();
      // The last look: no event comes any more, and what is left is the next supervisor's, also a stop that is meant for us.
      s.commandInbox.lastLook();
    }
    s.commandInbox.close();
    env.telemetry.note("supervisor_stopped", { pid: process.pid, reason: endedBy });
    env.telemetry.close();
    s.parts.close();
    s.journal.close();
    await s.status.leave(endedBy !== "lock-lost");
    env.alerts.close();
  }

  /** What runs may take its time to end: until then commands are taken, above all those that end it. */
  private async closePool(): Promise<void> {
    const look = setInterval(() => {
      try {
        this.s.commandInbox.work();
      } catch (error) {
        this.env.alerts.report("tick", `unexpected: ${messageOf(error)}`);
      }
    }, COMMANDS_LOOK_MS);
    await this.s.queue.pool.close(this.env.lifecycle.status !== "stopping", this.stopLimitMs);
    clearInterval(look);
  }

  /** Workers that are to give back what they run have so long to go (ms). */
  private get stopLimitMs(): number {
    return this.settings.grace_ms * 2 + 2000;
  }

  private async dryRun(): Promise<RunSummary> {
    const { parts, queue } = this.s;
    const { backlog, scanner } = queue;
    const { clock, isOn } = this.env;
    // No tick: a tick starts workers.
    this.timer.stop();
    scanner.hint(undefined);
    while (isOn && scanner.hasWork) scanner.work(clock.monotonicMs() + 100);
    backlog.promoteDue(clock.wallMs(), clock.monotonicMs());
    await parts.start(true);
    const wouldRun = parts.statuses.flatMap((status) => status.wouldRun());
    for (let task = backlog.takeBest(); task !== undefined; task = backlog.takeBest())
      wouldRun.push(task.id);
    return { ...this.summary("once"), wouldRun };
  }

  private summary(endedBy: EndReason): RunSummary {
    const { completions, parts, queue, rejections } = this.s;
    const { backlog, scanner } = queue;
    return {
      ...completions.counts,
      refused: rejections.count,
      blocked: backlog.count("blocked") + backlog.count("unmatched") + scanner.unreadableCount,
      held: findBlockedTasks(this.env.trays, this.s),
      wouldRun: [],
      endedBy,
      ...reportOf(parts),
    };
  }
}
