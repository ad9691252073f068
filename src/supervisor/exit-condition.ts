/** When a supervisor has no reason to go on: drained, through with its one pass, at its limit, or without its lock. */
import type { Settings } from "../core/settings.ts";
import type { CommandInbox } from "./control/command-inbox.ts";
import type { ControlFile } from "./documents/control-file.ts";
import type { Ownership } from "./documents/ownership.ts";
import type { EndReason, Lifecycle } from "./environment/lifecycle.ts";
import type { RunMode } from "./environment/options.ts";
import type { Parts } from "./environment/parts.ts";
import { NEVER, type Service } from "./environment/service.ts";
import type { Queue } from "./queue/queue.ts";
import type { StartLimits } from "./queue/start-limits.ts";

export interface ExitConditionParts {
  queue: Queue;
  parts: Parts;
  commands: CommandInbox;
  control: ControlFile;
  limits: StartLimits;
  ownership: Ownership;
}

export class ExitCondition implements Service {
  private readonly settings: Pick<Settings, "mailbox_enabled">;
  private readonly mode: Pick<RunMode, "once" | "drain">;
  private readonly lifecycle: Lifecycle;
  private readonly p: ExitConditionParts;
  /** A retry or a refusal stood half-way when we looked last. */
  private isHalfWay = false;

  constructor(
    settings: Pick<Settings, "mailbox_enabled">,
    mode: Pick<RunMode, "once" | "drain">,
    lifecycle: Lifecycle,
    parts: ExitConditionParts,
  ) {
    this.settings = settings;
    this.mode = mode;
    this.lifecycle = lifecycle;
    this.p = parts;
  }

  work(): void {
    const reason = this.find();
    if (reason !== undefined) this.lifecycle.end(reason);
  }

  nextMs(): number {
    return NEVER;
  }

  /** @returns why it is over; undefined: it goes on */
  private find(): EndReason | undefined {
    const { once: isOnePass = false, drain: isDrain = false } = this.mode;
    const { commands, limits, parts } = this.p;
    const { backlog, finishedIds, scanner } = this.p.queue;
    if (this.p.ownership.isLost) return "lock-lost";
    const isLimited = limits.left === 0;
    if (!isDrain && !isOnePass && !isLimited) return undefined;
    // What is not whole yet, or has a second name, is judged within a second.
    if (commands.isBusy || commands.relookMs !== undefined) return undefined;
    if (!this.settings.mailbox_enabled) return isOnePass ? "once" : "drained";
    if (!scanner.isComplete || !parts.isStarted) return undefined;
    // It is being found out whether what they wait for has completed under another spelling.
    if (backlog.count("blocked") > 0 && finishedIds.hasWork) return undefined;
    const canStart =
      (backlog.best(false, parts.mayStart) !== undefined || parts.canStart()) &&
      !this.p.control.current.paused;
    if (isOnePass && !canStart && this.isPassOver()) return "once";
    if (isLimited && this.isPassOver()) return "limit";
    if (isDrain && !scanner.hasWork && this.isDrained()) return "drained";
    return undefined;
  }

  /** A pass is over, or a limit reached, when what was started has ended; what waits for its retry does not hold it up. */
  private isPassOver(): boolean {
    const { dispatcher, processing } = this.p.queue;
    return dispatcher.offeredCount === 0 && !processing.isBusy() && !this.p.parts.isBusy();
  }

  private isDrained(): boolean {
    const { backlog, scanner, dispatcher, processing } = this.p.queue;
    const left = backlog.count("runnable") + backlog.count("delayed") + scanner.unsettledCount;
    if (left > 0 || dispatcher.inFlight.size > 0) return false;
    // A retry that stands half-way ends in the inbox: then there is more to do.
    const wasHalfWay = this.isHalfWay;
    this.isHalfWay = processing.hasHalfMoves();
    if (wasHalfWay && !this.isHalfWay) scanner.hint(undefined);
    if (this.isHalfWay || scanner.hasWork) return false;
    return this.p.parts.isIdle();
  }
}
