/**
 * The side of the tree that has the tasks. The names in `processing/` hold everything that it must not forget: a task that is held
 * for the cluster must be published, and no other one. Publish and drop may be repeated, so a dead process leaves nothing to
 * repair. Calls about one dispatch must follow each other; a call that rejects is made again.
 */
import { type Dispatch, dispatchId } from "./dispatch.ts";
import type { BeatEntry, Job, Result } from "./messages.ts";
import type { Delivery, OriginBroker, OriginTree } from "./ports.ts";

interface Sent {
  dispatch: Dispatch;
  target: string;
  /** When a machine last reported it, or the broker was last known to have it (monotonic ms). */
  heardMs: number;
  /** When all machines were asked for it after that (monotonic ms); undefined when they were not asked. */
  askedMs?: number;
  /** The newest delivery that a machine has reported, and when it last did so (monotonic ms). */
  newest?: { machine: string; turn: string; heardMs: number };
  /** When it was first sent, or its newest machine was last sure of it: for `ack_wait` after that no other one gets it (monotonic ms). */
  freshMs?: number;
  /** When all machines were asked, because a result came whose job another machine may have got since (monotonic ms). */
  doubtedMs?: number;
}

export interface OriginOptions {
  tree: OriginTree;
  broker: OriginBroker;
  nowMs: () => number;
  /** A job that no machine has reported for this long is looked for (ms). */
  silenceMs: number;
  /** A machine answers a question within this time (ms). */
  answerMs: number;
  /** After this time without renewal the broker delivers a job to another machine (ms). */
  ackWaitMs: number;
}

export class Origin {
  private readonly options: OriginOptions;
  private readonly sent = new Map<string, Sent>();

  constructor(options: OriginOptions) {
    this.options = options;
  }

  /**
   * Notes a dispatch of an earlier process. A new process does so for each held task before its first `publish`, and drops all
   * other jobs of this tree at the broker.
   */
  adopt(dispatch: Dispatch, target: string): void {
    this.note(dispatch, target, Number.NEGATIVE_INFINITY);
  }

  private note(dispatch: Dispatch, target: string, heardMs: number): Sent {
    const id = dispatchId(dispatch);
    const { askedMs: _answered, ...known } = this.sent.get(id) ?? {};
    const sent = { ...known, dispatch, target, heardMs };
    this.sent.set(id, sent);
    return sent;
  }

  /** Whether `publish` has something to do for the dispatch with this id. */
  isDue(id: string): boolean {
    const { nowMs, silenceMs, answerMs } = this.options;
    const known = this.sent.get(id);
    if (known === undefined) return true;
    if (nowMs() - known.heardMs < silenceMs) return false;
    return known.askedMs === undefined || nowMs() - known.askedMs >= answerMs;
  }

  /**
   * Publishes the job of a new held task. If a job was sent already and no machine reports it, this first makes sure that the
   * broker no longer has it, then asks the machines. If none answers, a later call publishes it again. This order is safe, because
   * a job that left the broker is noted at a machine, or its result is at the broker.
   */
  async publish(job: Job): Promise<void> {
    const { dispatch, target } = job;
    const { tree, broker, nowMs } = this.options;
    const id = dispatchId(dispatch);
    const known = this.sent.get(id);
    if (!this.isDue(id)) return;
    if (tree.standing(dispatch, target) !== "waits") return;
    if (known === undefined) {
      // Noted first, so that `dropIfOver` finds the published job if the task is cancelled now.
      this.adopt(dispatch, target);
      Object.assign(this.sent.get(id) ?? {}, { freshMs: nowMs() });
      await broker.publishJob(job);
    } else if (known.askedMs === undefined) {
      if (!(await broker.hasJob(target, id))) {
        await broker.ask();
        known.askedMs = nowMs();
        return;
      }
    } else if (!(await broker.hasResult(id))) await broker.publishJob(job);
    this.note(dispatch, target, nowMs());
  }

  /** The ids of dispatches that are or may be at the broker or a machine. */
  known(): string[] {
    return [...this.sent.keys()];
  }

  /** Takes back a job whose task is no longer held, for example because it was cancelled. */
  async dropIfOver(id: string): Promise<void> {
    const sent = this.sent.get(id);
    if (sent === undefined || this.options.tree.standing(sent.dispatch, sent.target) !== "over")
      return;
    await this.options.broker.dropJob(sent.target, id);
    this.sent.delete(id);
  }

  /** Whether no other machine that was heard of late has got this dispatch after this one. */
  isNewest(id: string, machine: string, turn: string): boolean {
    const { nowMs, silenceMs } = this.options;
    const newer = this.newerThan(id, machine, turn);
    return newer === undefined || nowMs() - newer.heardMs >= silenceMs;
  }

  /** The newest delivery, if another machine has got it after this one. */
  private newerThan(id: string, machine: string, turn: string): Sent["newest"] {
    const newest = this.sent.get(id)?.newest;
    return newest !== undefined && newest.machine !== machine && newest.turn > turn
      ? newest
      : undefined;
  }

  /** Handles the report of a machine that it has this dispatch. */
  async onBeat(machine: string, entry: Omit<BeatEntry, "run">): Promise<void> {
    const { dispatch, target, turn = "", is_sure: isSure = true } = entry;
    const id = dispatchId(dispatch);
    const heardMs = this.options.nowMs();
    // Machines report all their dispatches again and again. A known one is only noted here; `dropIfOver` checks it.
    if (!this.sent.has(id)) {
      const standing = this.options.tree.standing(dispatch, target);
      if (standing === "over") await this.tellOver(machine, target, id);
      if (standing !== "waits") return;
    }
    const isNewest = this.isNewest(id, machine, turn);
    const sent = this.note(dispatch, target, heardMs);
    if (!isNewest) return;
    sent.newest = { machine, turn, heardMs };
    if (isSure) sent.freshMs = heardMs;
  }

  /**
   * Handles the result of a run: settles the task, sends the receipt, then marks the message as done. After a crash in between the
   * message comes again, and the rest is done. A result of an older lease stays at the broker while a newer run is heard: it settles
   * the task only if that run is lost.
   */
  async onResult(result: Result, message: Delivery): Promise<void> {
    const { dispatch, machine, target } = result;
    const { tree } = this.options;
    const id = dispatchId(dispatch);
    const waits = tree.standing(dispatch, target) === "waits";
    if (waits && !(await this.mayEnd(id, result))) return message.later();
    const isSettled = waits && (await tree.settle(dispatch, result));
    // The task may have left its gate for a moment, and will be held again.
    if (!isSettled && tree.standing(dispatch, target) !== "over") return message.later();
    if (!isSettled) tree.bookCosts(result);
    await this.tellOver(machine, target, id);
    await message.done();
  }

  /** Whether this result is that of the newest run, as far as all machines have answered. */
  private async mayEnd(id: string, result: Result): Promise<boolean> {
    const { dispatch, target, machine, turn = "", is_sure: isSure = true } = result;
    const { broker, nowMs, answerMs, ackWaitMs } = this.options;
    if (!this.isNewest(id, machine, turn)) return false;
    const { doubtedMs, freshMs = Number.NEGATIVE_INFINITY } = this.sent.get(id) ?? {};
    // The result may have been on its way for longer than its machine had the job. A machine that got it later may only be silent.
    const isOlder = this.newerThan(id, machine, turn) !== undefined;
    if (isSure && !isOlder && nowMs() - freshMs < ackWaitMs) return true;
    if (doubtedMs !== undefined) return nowMs() - doubtedMs >= answerMs;
    // The job goes first, so that no machine takes it that was asked before it had it.
    await broker.dropJob(target, id);
    await broker.ask();
    if (!this.sent.has(id)) this.adopt(dispatch, target);
    Object.assign(this.sent.get(id) ?? {}, { doubtedMs: nowMs() });
    return false;
  }

  /** Drops the job first, so that no other machine takes it when this one gives it up. */
  private async tellOver(machine: string, target: string, id: string): Promise<void> {
    const { broker } = this.options;
    await broker.dropJob(target, id);
    this.sent.delete(id);
    await broker.publishOver(machine, id);
  }
}
