/** Whether tasks and nodes may start now, and how many: not before the first scan, not while paused, not beyond a limit. */
import type { Telemetry } from "../journal/telemetry.ts";
import type { ControlState } from "./control-state.ts";
import type { Intake } from "./intake.ts";
import type { LaunchAllowance } from "./plan/launcher.ts";
import type { PlanEngine } from "./plan/plan-engine.ts";
import type { Pool } from "./pool.ts";
import type { Selection } from "./selection.ts";
import type { SettledIds } from "./settled-ids.ts";

export interface LaunchingParts {
  /** False when only commands are taken. */
  isOn: boolean;
  /** Tasks that may be started in all. */
  launchesMax: number;
  control: ControlState;
  intake: Intake;
  settledIds: SettledIds;
  selection: Selection;
  plan: PlanEngine;
  pool: Pool;
  telemetry: Telemetry;
}

/** Selection waits this long for the first whole scan, so that a small inbox runs in the right order (ms). */
const FIRST_SCAN_MS = 250;

export class Launching {
  private readonly p: LaunchingParts;
  /** Monotonic ms. */
  private startedMs = 0;

  constructor(parts: LaunchingParts) {
    this.p = parts;
  }

  /** The wait for the first scan begins. @param nowMs monotonic */
  start(nowMs: number): void {
    this.startedMs = nowMs;
  }

  mayLaunch(nowMs: number): boolean {
    const { intake, settledIds, control, isOn } = this.p;
    const isScanned =
      (intake.isComplete && settledIds.isComplete) || nowMs - this.startedMs > FIRST_SCAN_MS;
    return isScanned && !control.current.paused && isOn;
  }

  /** How many more may start. */
  get left(): number {
    return Math.max(0, this.p.launchesMax - this.p.selection.launchedCount);
  }

  /**
   * While the plan is made anew only planners start, unless the planner itself waits for other nodes. Ends when the planner
   * node has settled.
   */
  isReplanning(): boolean {
    const { control, plan, telemetry } = this.p;
    if (!control.current.replan_paused || !plan.isStarted) return control.current.replan_paused;
    if (plan.isPlanning()) return !plan.isPlannerWaiting();
    control.change({ replan_paused: false });
    telemetry.note("replan_finished");
    return false;
  }

  /** @returns what the plan may launch; undefined when nothing may start */
  allowance(nowMs: number): LaunchAllowance | undefined {
    if (!this.mayLaunch(nowMs)) return undefined;
    return {
      // A node is in progress when it is about to run, not while the workers are still starting.
      slots: this.p.pool.readySlots,
      launchesMax: this.left - this.p.plan.unselectedCount,
      onlyPlanners: this.isReplanning(),
    };
  }
}
