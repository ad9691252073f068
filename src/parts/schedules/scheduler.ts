/**
 * Fires the schedules of a tree. It notes a decision after its tasks are submitted. After a crash in between it decides again, and
 * `submitOnce` submits the task of each time only once.
 */
import type { Apart } from "../../core/apart.ts";
import { ErrTaskExists, messageOf, systemCode } from "../../core/errors.ts";
import { foldId } from "../../core/names.ts";
import { enqueueCommand } from "../../mailbox/commands/command-queue.ts";
import { findWaiting, liveIds } from "../../mailbox/find/locate.ts";
import { submitOnce } from "../../mailbox/submit/submit-once.ts";
import type { Environment } from "../../supervisor/environment/environment.ts";
import { ordersApart } from "../../supervisor/environment/orders-apart.ts";
import { type Decision, decide } from "./decide.ts";
import { firingId, firingText } from "./firing.ts";
import type { Schedule } from "./schedule.ts";
import {
  loadSchedule,
  placeOf,
  readControl,
  readLog,
  type ScheduleControl,
  type ScheduleLog,
  type ScheduleSource,
  scheduleNames,
  stampOf,
  writeLog,
} from "./schedule-files.ts";
import { timesAfter, timesBetween } from "./times.ts";

/** If the clock is set back by less than this, the scheduler waits until it has caught up. */
const SET_BACK_MS = 3 * 3_600_000;
/** Times that are skipped for the same reason as the one before are told together, at most this often (ms). */
const TELL_MS = 600_000;
/** At most this many due times are searched for a task in flight. */
const LIVE_MAX = 1000;

interface Known {
  schedule: Schedule;
  log: ScheduleLog;
  control: ScheduleControl;
  stamp: string;
  /** When the next time is due (epoch ms). */
  nextMs: number;
}

type SchedulerEnvironment = Pick<
  Environment,
  "tree" | "settings" | "trays" | "controlTrays" | "telemetry" | "alerts" | "facts"
>;

export class Scheduler {
  private readonly known = new Map<string, Known>();
  /** Stamps of files that cannot be used, by the name of the schedule. */
  private readonly bad = new Map<string, string>();

  private readonly orders: Apart;

  /** @param isPlanIdle resolves to true if nothing of the plan runs or will run by itself */
  constructor(
    private readonly env: SchedulerEnvironment,
    private readonly isPlanIdle: () => Promise<boolean>,
    private readonly tellMs: number = TELL_MS,
  ) {
    this.orders = ordersApart(env, "schedule");
  }

  /** When the next time is due (epoch ms); Infinity without one. */
  get nextMs(): number {
    return Math.min(Number.POSITIVE_INFINITY, ...[...this.known.values()].map((one) => one.nextMs));
  }

  /**
   * Reads changed files, and fires what is due. An error in one schedule does not stop the others.
   * @param untilMs later times are not decided (epoch ms): for the next supervisor they are missed
   */
  async look(untilMs = Number.POSITIVE_INFINITY): Promise<void> {
    this.readFiles();
    await this.orders.each(
      this.known,
      ([name]) => name,
      ([, one]) => this.fireDue(one, untilMs),
    );
  }

  private get source(): ScheduleSource {
    const { tree, settings } = this.env;
    return { stateDir: tree.dir, given: settings.schedules };
  }

  private readFiles(): void {
    const { dir } = this.env.tree;
    const names = scheduleNames(this.source);
    for (const name of this.known.keys()) if (!names.includes(name)) this.known.delete(name);
    for (const name of names) {
      try {
        const stamp = stampOf(dir, name);
        if (this.known.get(name)?.stamp !== stamp && this.bad.get(name) !== stamp)
          this.read(name, stamp);
      } catch (error) {
        // Its decisions, or whether it is paused, are not known. The next look reads it again.
        this.known.delete(name);
        this.env.alerts.report(`schedule:${name}`, `schedule ${name}: ${messageOf(error)}`);
      }
    }
  }

  /** Reads one schedule. If its file cannot be used, the last good version stays in force. */
  private read(name: string, stamp: string): void {
    const { tree, alerts } = this.env;
    const { schedule, error } = loadSchedule(this.source, name);
    if (schedule === undefined) {
      // After a system error the file is read again at the next look.
      if (systemCode(error?.cause) === undefined) this.bad.set(name, stamp);
      const inForce = this.known.get(name);
      if (inForce !== undefined) inForce.control = readControl(tree.dir, name);
      const then = this.known.has(name) ? "; the last good version is in force" : "";
      const hint = error?.hint === undefined ? "" : ` (${error.hint})`;
      alerts.report(
        `schedule:${name}`,
        `${placeOf(this.source, name)}: ${error?.message}${hint}${then}`,
      );
      return;
    }
    this.bad.delete(name);
    const log = readLog(tree.dir, name) ?? this.known.get(name)?.log;
    this.known.set(name, {
      schedule,
      stamp,
      control: readControl(tree.dir, name),
      log: log ?? { v: 1, decided_to_ms: Number.NaN, times: "", last: null, fired: 0, skipped: 0 },
      nextMs: 0,
    });
  }

  private async fireDue(one: Known, untilMs: number): Promise<void> {
    const wallMs = this.env.trays.clock.wallMs();
    const { schedule, control } = one;
    const fromMs = this.decidedTo(one, wallMs);
    const nowMs = Math.min(wallMs, untilMs);
    if (nowMs >= one.nextMs) {
      const isPaused = control.paused || schedule.isPaused;
      const live = this.findLive(one, fromMs, nowMs);
      const isBusy = live !== undefined || (schedule.isOfPlan && !(await this.isPlanIdle()));
      const decision = decide(schedule, fromMs, nowMs, isBusy, isPaused);
      if (decision !== undefined) await this.carryOut(one, decision, live);
    }
    const decidedMs = one.log.decided_to_ms;
    const [next = Number.POSITIVE_INFINITY] = timesAfter(schedule, Math.max(fromMs, decidedMs), 1);
    // A time that waits for the end of an earlier task is in the past, so each look decides it again.
    one.nextMs = next;
  }

  /**
   * The time up to which all is decided. A new or changed schedule counts from now, and so does each one after the clock was set
   * far back. A resumed schedule counts from its resume.
   */
  private decidedTo(one: Known, nowMs: number): number {
    const { schedule, control, log } = one;
    const isNew = log.times !== schedule.timesDigest || Number.isNaN(log.decided_to_ms);
    if (isNew || log.decided_to_ms - nowMs > SET_BACK_MS) {
      one.log = { ...log, decided_to_ms: nowMs, times: schedule.timesDigest };
      writeLog(this.env.tree.dir, schedule.name, one.log);
    }
    return Math.max(one.log.decided_to_ms, control.at_ms);
  }

  /**
   * The task of an earlier time that has not ended. If a decision was not noted, the task of a due time may be in flight, too. Then
   * that one counts as the last that fired.
   */
  private findLive(one: Known, fromMs: number, nowMs: number): string | undefined {
    const { trays } = this.env;
    const { schedule, log, control } = one;
    if (schedule.overlap === "allow") return undefined;
    const due = timesBetween(schedule, fromMs, nowMs, LIVE_MAX);
    if (due.length === 0) return undefined;
    const live = liveIds(trays);
    const isLive = (id: string): boolean =>
      live.has(foldId(id)) || findWaiting(trays, id) !== undefined;
    const fired = due
      .map((ms) => ({ nominal_ms: ms, id: firingId(schedule.name, ms) }))
      .find(({ id }) => isLive(id));
    if (fired !== undefined) one.log = { ...log, last: fired };
    return [fired?.id, log.last?.id, control.manual_id].find(
      (id) => id !== undefined && id !== null && isLive(id),
    ) as string | undefined;
  }

  /** @param live the task of an earlier time that has not ended */
  private async carryOut(one: Known, decision: Decision, live: string | undefined): Promise<void> {
    const { trays, alerts, facts, controlTrays, tree } = this.env;
    const { schedule } = one;
    const { name } = schedule;
    // A decision that was not noted is made again. It must not cancel the task that it submitted itself.
    const isItself = decision.fire.some((ms) => firingId(name, ms) === live);
    if (decision.replaces && live !== undefined && !isItself)
      await enqueueCommand(controlTrays, { command: "cancel", args: { node: live, final: true } });
    let { last, fired, skipped } = one.log;
    for (const nominalMs of decision.fire) {
      const id = firingId(name, nominalMs);
      try {
        await submitOnce(trays, {
          id,
          bytes: Buffer.from(firingText(schedule, nominalMs), "utf8"),
        });
        last = { nominal_ms: nominalMs, id };
        fired++;
        facts.emit("inbox:written", `${id}.json`);
      } catch (error) {
        if (!(error instanceof ErrTaskExists)) throw error;
        skipped++;
        alerts.report(
          `schedule:${name}:${id}`,
          `schedule ${name}: another task has the id ${id}, so this time does not run`,
        );
      }
    }
    for (const { count } of decision.skipped) skipped += count;
    const untold = this.tellSkipped(one, decision);
    one.log = {
      v: 1,
      times: schedule.timesDigest,
      decided_to_ms: decision.decidedToMs,
      last,
      fired,
      skipped,
      ...(untold && { untold }),
    };
    writeLog(tree.dir, name, one.log);
  }

  /** Writes events about skipped times. @returns what is told later: a schedule that is paused all night would fill the journal */
  private tellSkipped({ schedule, log }: Known, decision: Decision): ScheduleLog["untold"] {
    const nowMs = this.env.trays.clock.wallMs();
    const tell = (reason: string, count: number): void => {
      const fields = { schedule: schedule.name, count, reason };
      if (count > 0) this.env.telemetry.note("schedule_skipped", fields);
    };
    let { untold } = log;
    for (const { count, why } of decision.skipped) {
      if (untold?.reason === why) untold = { ...untold, count: untold.count + count };
      else {
        if (untold !== undefined) tell(untold.reason, untold.count);
        untold = { reason: why, told_ms: Number.NEGATIVE_INFINITY, count };
      }
    }
    if (untold === undefined) return undefined;
    const hasFired = decision.fire.length > 0;
    if (!hasFired && Math.abs(nowMs - untold.told_ms) < this.tellMs) return untold;
    tell(untold.reason, untold.count);
    return hasFired ? undefined : { ...untold, told_ms: nowMs, count: 0 };
  }
}
