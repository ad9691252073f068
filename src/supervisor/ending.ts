/** When a supervisor has no reason to go on: drained, through with its one pass, at its limit, or without its lock. */
import type { Backlog } from "../core/backlog.ts";
import type { Commands } from "./commands.ts";
import type { ControlState } from "./control-state.ts";
import type { Intake } from "./intake.ts";
import type { Launching } from "./launching.ts";
import type { PlanEngine } from "./plan/plan-engine.ts";
import type { Presence } from "./presence.ts";
import type { Processing } from "./processing.ts";
import type { RunSummary } from "./run-shapes.ts";
import type { Selection } from "./selection.ts";
import type { SettledIds } from "./settled-ids.ts";

export interface EndingParts {
  /** False when only commands are taken. */
  isOn: boolean;
  isOnePass: boolean;
  isDrain: boolean;
  presence: Presence;
  commands: Commands;
  control: ControlState;
  launching: Launching;
  backlog: Backlog;
  intake: Intake;
  selection: Selection;
  settledIds: SettledIds;
  processing: Processing;
  plan: PlanEngine;
}

export class Ending {
  private readonly p: EndingParts;
  /** A retry or a refusal stood half-way when we looked last. */
  private isHalfWay = false;

  constructor(parts: EndingParts) {
    this.p = parts;
  }

  /** @returns why it is over; undefined: it goes on */
  find(): RunSummary["endedBy"] | undefined {
    const { isOn, isOnePass, isDrain, commands, intake, plan, launching } = this.p;
    if (this.p.presence.isLost) return "lock-lost";
    const isLimited = launching.left === 0;
    if (!isDrain && !isOnePass && !isLimited) return undefined;
    // What is not whole yet, or has a second name, is judged within a second.
    if (commands.isBusy || commands.relookMs !== undefined) return undefined;
    if (!isOn) return isOnePass ? "once" : "drained";
    if (!intake.isComplete || !plan.isStarted) return undefined;
    // It is being found out whether what they wait for has completed under another spelling.
    if (this.p.backlog.count("blocked") > 0 && this.p.settledIds.hasWork) return undefined;
    const canLaunch =
      (this.p.backlog.count("runnable") > 0 || plan.canLaunch(launching.isReplanning())) &&
      !this.p.control.current.paused;
    if (isOnePass && !canLaunch && this.isPassOver()) return "once";
    if (isLimited && this.isPassOver()) return "limit";
    if (isDrain && !intake.hasWork && this.isDrained()) return "drained";
    return undefined;
  }

  /** A pass is over, or a limit reached, when what was started has ended; what waits for its retry does not hold it up. */
  private isPassOver(): boolean {
    const { selection, processing, plan } = this.p;
    return selection.offeredCount === 0 && !processing.isBusy() && !plan.isApplying();
  }

  private isDrained(): boolean {
    const { backlog, intake, selection, processing, plan, launching } = this.p;
    const left = backlog.count("runnable") + backlog.count("delayed") + intake.unsettledCount;
    if (left > 0 || selection.inFlight.size > 0) return false;
    // A retry that stands half-way ends in the inbox: then there is more to do.
    const wasHalfWay = this.isHalfWay;
    this.isHalfWay = processing.hasHalfMoves();
    if (wasHalfWay && !this.isHalfWay) intake.hint(undefined);
    if (this.isHalfWay || intake.hasWork) return false;
    return plan.isIdle(launching.isReplanning());
  }
}
