/** Starts a run: the supervisor takes the tree, applies earlier commands, takes back the tasks of dead processes, and watches. */
import { messageOf } from "../core/errors.ts";
import { closedPoolGates, type PoolGate } from "../core/gates.ts";
import { readVersion } from "../host/package.ts";
import { finishKeys } from "../mailbox/submit/keys.ts";
import { finishTickets } from "../mailbox/submit/submit-once.ts";
import type { ControlFile } from "./documents/control-file.ts";
import type { Environment } from "./environment/environment.ts";
import type { SupervisorOptions } from "./environment/options.ts";
import type { Parts } from "./environment/parts.ts";
import type { Poll } from "./poll.ts";
import type { Pool } from "./pool/pool.ts";
import type { StartLimits } from "./queue/start-limits.ts";
import type { StatusWriter } from "./status/status-writer.ts";

/** What an earlier command or the settings hold back. `run` itself tells the number of slots. */
const TOLD: ReadonlySet<PoolGate> = new Set(["mailbox", "pause", "replan"]);

export interface StartupParts {
  status: StatusWriter;
  control: ControlFile;
  limits: StartLimits;
  pool: Pool;
  poll: Poll;
  parts: Parts;
}

export class Startup {
  private readonly options: SupervisorOptions;
  private readonly deps: StartupParts;

  constructor(
    private readonly env: Environment,
    options: SupervisorOptions,
    parts: StartupParts,
  ) {
    this.options = options;
    this.deps = parts;
  }

  /** @throws ErrSupervisorRunning when another live supervisor owns the tree; ErrIo when its document cannot be written */
  async run(): Promise<void> {
    const { settings, trays, telemetry, alerts, wake } = this.env;
    const { status, limits, poll, parts } = this.deps;
    const startedAt = await status.introduce();
    limits.start(trays.clock.monotonicMs());
    telemetry.note("supervisor_started", { pid: process.pid, version: readVersion() });
    this.keepDamagedControl();
    this.applyWhatHolds(startedAt);
    // Publish the tickets of dead processes first: a drain must find their tasks when it asks whether any task is left.
    if (settings.mailbox_enabled)
      await finishTickets(trays).catch((error: unknown) =>
        alerts.report(
          "once",
          `cannot submit a task whose process died while submitting it: ${messageOf(error)}`,
        ),
      );
    if (settings.mailbox_enabled)
      try {
        finishKeys(trays);
      } catch (error) {
        alerts.report(
          "keys",
          `cannot free a dedup_key whose process died while freeing it: ${messageOf(error)}`,
        );
      }
    // Recovery may have much to do.
    const endBeats = status.beatByTimer();
    await poll.start().finally(endBeats);
    void parts.start(this.options.once === true).then(wake);
    wake();
  }

  private keepDamagedControl(): void {
    try {
      this.deps.control.keepDamaged();
    } catch (error) {
      // The next save tries again, and keeps the file as it is until then.
      this.env.alerts.report(
        "control_damaged",
        `control.json is damaged and cannot be kept: ${messageOf(error)}`,
      );
    }
  }

  /** Applies earlier commands, which still hold and may surprise the person who started this run. */
  private applyWhatHolds(startedAt: string): void {
    const { control, limits, pool } = this.deps;
    const { alerts, trays } = this.env;
    if (this.options.paused === true && !control.current.paused)
      control.change({ paused: true, paused_at: startedAt, paused_by: "run --paused" });
    const remembered = this.options.once === true ? undefined : this.rememberedSlots();
    if (remembered !== undefined) pool.setMaxSlots(remembered);
    this.options.onStart?.({
      slots: remembered ?? this.env.settings.workers,
      areSlotsRemembered: remembered !== undefined,
    });
    for (const { code, why, do: todo } of closedPoolGates(limits.pool(trays.clock.monotonicMs())))
      if (TOLD.has(code)) alerts.notice(`${why} (${todo})`);
  }

  /** The number that `set-workers` set before this start, unless this run was given another number than the one it replaced. */
  private rememberedSlots(): number | undefined {
    const { control } = this.deps;
    const { max_workers: slots, max_workers_over: over } = control.current;
    if (slots === null) return undefined;
    const isNewer = this.options.areWorkersGiven === true && over !== this.env.settings.workers;
    if (!isNewer || over === null) return slots;
    control.change({ max_workers: null, max_workers_by: null, max_workers_over: null });
    return undefined;
  }
}
