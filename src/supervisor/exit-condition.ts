/** Decides when a supervisor ends: it is drained, has made its one pass, has reached its limit, or has lost its lock. */
import { foldId } from "../core/names.ts";
import type { Settings } from "../core/settings.ts";
import { laneOf } from "../core/waiting-task.ts";
import type { CommandInbox } from "./control/command-inbox.ts";
import type { ControlFile } from "./documents/control-file.ts";
import type { Ownership } from "./documents/ownership.ts";
import type { Facts } from "./environment/facts.ts";
import type { EndReason, Lifecycle } from "./environment/lifecycle.ts";
import type { RunMode } from "./environment/options.ts";
import type { Parts } from "./environment/parts.ts";
import { NEVER, type Service, type Tick } from "./environment/service.ts";
import type { Queue } from "./queue/queue.ts";
import type { Skipper } from "./queue/skipper.ts";
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
  private readonly deps: ExitConditionParts;
  /** At the last look a retry, a refusal or a settlement was unfinished. */
  private isHalfWay = false;
  /** Something has run since the last whole look at the inbox, while work is being finished. */
  private isUnseen = true;
  /** A task has ended since the last whole look at the inbox. */
  private hasEnded = false;

  constructor(
    private readonly settings: Pick<Settings, "mailbox_enabled">,
    private readonly mode: Pick<RunMode, "once" | "drain">,
    private readonly lifecycle: Lifecycle,
    parts: ExitConditionParts,
    private readonly skipper: Pick<Skipper, "isBusy">,
    facts: Facts,
  ) {
    for (const fact of ["task:settled", "task:failed", "task:skipped"] as const)
      facts.on(fact, () => (this.hasEnded = true));
    this.deps = parts;
  }

  work({ nowMs }: Tick): void {
    const { finishingUntilMs } = this.lifecycle;
    const reason =
      finishingUntilMs !== undefined && (nowMs >= finishingUntilMs || this.isAllFinished())
        ? "stop"
        : this.find();
    if (reason !== undefined) this.lifecycle.end(reason);
  }

  nextMs(): number {
    return this.lifecycle.finishingUntilMs ?? NEVER;
  }

  /** Whether no task runs, and no landing, review or fix of ended tasks is left. */
  private isAllFinished(): boolean {
    const { backlog, scanner } = this.deps.queue;
    if (this.deps.control.current.paused) return this.isPassOver();
    if (!this.isPassOver() || backlog.finishingCount > 0 || !scanner.isComplete) {
      this.isUnseen = true;
      return false;
    }
    // What has ended may have submitted a landing, which no event has reported yet.
    if (this.isUnseen) scanner.hint(undefined);
    this.isUnseen = false;
    return !scanner.hasWork;
  }

  /** @returns the reason to end; undefined when the run continues */
  private find(): EndReason | undefined {
    const { once: isOnePass = false, drain: isDrain = false } = this.mode;
    const { commands, limits, parts } = this.deps;
    const { backlog, finishedIds, scanner } = this.deps.queue;
    if (this.deps.ownership.isLost) return "lock-lost";
    const isLimited = limits.left === 0;
    if (!isDrain && !isOnePass && !isLimited) return undefined;
    // A file that is incomplete or has a second name is judged within a second.
    if (commands.isBusy || commands.relookMs !== undefined) return undefined;
    if (!this.settings.mailbox_enabled) return isOnePass ? "once" : "drained";
    if (!scanner.isComplete || !parts.isStarted) return undefined;
    // It is not known yet whether the dependencies of blocked tasks have completed under another spelling.
    if (backlog.count("blocked") > 0 && finishedIds.hasWork) return undefined;
    if (this.skipper.isBusy || scanner.isJudgingKeys) return undefined;
    const canStart =
      (backlog.best("all", parts.mayStart) !== undefined || parts.canStart()) &&
      !this.deps.control.current.paused;
    if (isOnePass && !canStart && this.isPassOver()) return "once";
    if (isLimited && this.isPassOver()) return "limit";
    if (isDrain && !scanner.hasWork && this.isDrained()) return "drained";
    return undefined;
  }

  /** Whether the started tasks have ended, so that a pass is over or a limit is reached. Tasks that wait for a retry do not count. */
  private isPassOver(): boolean {
    const { accepted, processing } = this.deps.queue;
    if (accepted.count("offered") > 0 || this.deps.parts.isBusy()) return false;
    if (processing.isBusy()) processing.tellStrange();
    return !processing.isBusy();
  }

  private isDrained(): boolean {
    const { accepted, backlog, scanner, processing } = this.deps.queue;
    if (backlog.timedCount + scanner.unsettledCount > 0) return false;
    // Tasks of closed lanes do not count: they wait for a group or an agent with 0 slots, or for a person's answer.
    const isOpen = (lane: string): boolean => this.deps.parts.whyClosed(lane) === undefined;
    if (backlog.best("all", isOpen) !== undefined) return false;
    const closed = new Set<string>();
    for (const task of backlog.held()) {
      if (isOpen(laneOf(task))) return false;
      closed.add(foldId(task.id));
    }
    for (const id of accepted.ids())
      if (backlog.stateOfId(id) !== "runnable" && !closed.has(foldId(id))) {
        processing.tellStrange();
        return false;
      }
    // An unfinished retry ends in the inbox: then there is more to do.
    const wasHalfWay = this.isHalfWay;
    this.isHalfWay = processing.hasHalfMoves();
    if (this.isHalfWay) return false;
    // A task that has ended may have submitted tasks, or have callbacks: their files are there, but no event has reported them
    // yet.
    if (wasHalfWay || this.hasEnded) scanner.hint(undefined);
    this.hasEnded = false;
    if (scanner.hasWork) return false;
    return this.deps.parts.isIdle() && !this.releaseDone();
  }

  /** Releases tasks whose dependencies a part counts as done: no event reports that a whole epic is done. True when any can run now. */
  private releaseDone(): boolean {
    const { backlog } = this.deps.queue;
    const { parts } = this.deps;
    const awaited = [...backlog.dependencies()];
    const done = awaited.filter((id) => parts.isDone(id) === true);
    const ended = awaited.filter((id) => parts.hasEnded(id) === true);
    const freed = [
      ...done.map((id) => backlog.resolveDependency(id)),
      ...ended.map((id) => backlog.resolveEnd(id)),
    ];
    return freed.some((count) => count > 0);
  }
}
