/**
 * Whether tasks and nodes may start now, and how many: not before the first scan, not while paused or short of room, not beyond
 * a limit.
 */

import type { PlanEngine } from "../../parts/plan/engine/engine.ts";
import type { LaunchAllowance } from "../../parts/plan/engine/launch-nodes.ts";
import type { ControlFile } from "../documents/control-file.ts";
import type { Environment } from "../environment/environment.ts";
import type { InboxScanner } from "../inbox/scanner.ts";
import type { Pool } from "../pool/pool.ts";
import type { DiskLimit } from "./disk-limit.ts";
import type { Choice, Dispatcher } from "./dispatcher.ts";
import type { FinishedIds } from "./finished-ids.ts";

export interface StartLimitsParts {
  /** Tasks that may be started in all. */
  launchesMax: number;
  control: ControlFile;
  disk: DiskLimit;
  scanner: InboxScanner;
  finishedIds: FinishedIds;
  dispatcher: Dispatcher;
  plan: PlanEngine;
  pool: Pool;
}

/** The dispatcher waits this long for the first whole scan, so that a small inbox runs in the right order (ms). */
const FIRST_SCAN_MS = 250;

export class StartLimits {
  private readonly env: Pick<Environment, "isOn" | "telemetry">;
  private readonly p: StartLimitsParts;
  /** Monotonic ms. */
  private startedMs = 0;

  constructor(env: Pick<Environment, "isOn" | "telemetry">, parts: StartLimitsParts) {
    this.env = env;
    this.p = parts;
  }

  /** The wait for the first scan begins. @param nowMs monotonic */
  start(nowMs: number): void {
    this.startedMs = nowMs;
  }

  /**
   * Which tasks may start; undefined: none. A node that is in progress when the pool is paused has been launched, and what
   * waits for its end must not wait for ever.
   */
  whichMayStart(nowMs: number): Choice | undefined {
    const { control, plan } = this.p;
    if (!this.isReady(nowMs)) return undefined;
    const unbegun = plan.unbegun();
    if (control.current.paused) {
      // Before the plan is read it is not known what has begun.
      if (!plan.isStarted) return undefined;
      const launched = control.current.launched.filter((id) => unbegun.includes(id));
      // What has begun is forgotten: a pause holds for its next run.
      if (launched.length < control.current.launched.length) control.change({ launched });
      return launched.length === 0 ? undefined : { kind: "these", ids: launched };
    }
    return this.isReplanning() ? { kind: "planners", ids: unbegun } : { kind: "all" };
  }

  private isReady(nowMs: number): boolean {
    const { scanner, finishedIds, disk } = this.p;
    const isScanned =
      (scanner.isComplete && finishedIds.isComplete) || nowMs - this.startedMs > FIRST_SCAN_MS;
    return isScanned && disk.shortage === undefined && this.env.isOn;
  }

  /** How many more may start. */
  get left(): number {
    return Math.max(0, this.p.launchesMax - this.p.dispatcher.launchedCount);
  }

  /**
   * While the plan is made anew only planners start, unless the planner itself waits for other nodes. Ends when the planner
   * node has settled.
   */
  isReplanning(): boolean {
    const { control, plan } = this.p;
    if (!control.current.replan_paused || !plan.isStarted) return control.current.replan_paused;
    if (plan.isPlanning()) return !plan.isPlannerWaiting();
    control.change({ replan_paused: false });
    this.env.telemetry.note("replan_finished");
    return false;
  }

  /** @returns what the plan may launch; undefined when nothing may start */
  allowance(nowMs: number): LaunchAllowance | undefined {
    if (!this.isReady(nowMs) || this.p.control.current.paused) return undefined;
    return {
      // A node is in progress when it is about to run, not while the workers are still starting.
      slots: this.p.pool.readySlots,
      launchesMax: this.left - this.p.plan.unselectedCount,
      onlyPlanners: this.isReplanning(),
    };
  }
}
