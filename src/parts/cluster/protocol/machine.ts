/**
 * The side of a machine that works for other trees. A job becomes a task of its own mailbox, under the id of the dispatch, so a job
 * that is delivered twice becomes one task. A note about each taken job exists before its task, and until the origin says that the
 * dispatch is over. Calls about one dispatch must follow each other; a call that rejects is made again.
 */
import { dispatchId } from "./dispatch.ts";
import type { End, Job } from "./messages.ts";
import type { Delivery, MachineBroker, MachineTree, Note } from "./ports.ts";

/** A machine stops a run when it could not renew the job within this part of `ack_wait`. The rest of the time is for the stop. */
const RENEWED_WITHIN = 0.6;
/** A job that may have been delivered longer ago than this part of `ack_wait` is renewed before it starts. */
const FRESH_WITHIN = 0.3;

export interface MachineOptions {
  /** The name of this machine. */
  name: string;
  tree: MachineTree;
  broker: MachineBroker;
  nowMs: () => number;
  /** After this time without renewal the broker delivers a job to another machine (ms). */
  ackWaitMs: number;
}

export class Machine {
  private readonly options: MachineOptions;
  /** When the last successful renewal of each job was asked for (monotonic ms). */
  private readonly renewedMs = new Map<string, number>();
  /** Dispatches whose jobs another machine may have got, because this process has not renewed them without a gap. */
  private readonly unsure = new Set<string>();
  /** Dispatches whose results are at the broker and whose jobs are not, so there is nothing to renew. */
  private readonly finished = new Set<string>();

  constructor(options: MachineOptions) {
    this.options = options;
  }

  /**
   * @param lease renews this delivery
   * @param sinceMs the earliest time of the delivery; since then it may have waited here unread (monotonic ms)
   * @param turn see `Note`
   */
  async onJob(
    job: Job,
    lease: string,
    delivery: Delivery,
    sinceMs = this.options.nowMs(),
    turn = "",
  ): Promise<void> {
    const { tree } = this.options;
    const { dispatch, target } = job;
    const id = dispatchId(dispatch);
    const renewedMs = await this.renewedSince(lease, sinceMs);
    // Another machine may have the job by now. If not, the broker delivers it again.
    if (renewedMs === undefined) return;
    const before = tree.note(id);
    // This copy was on its way when the origin dropped the job.
    if (before?.state === "over") return delivery.done();
    const place = tree.placeOf(id);
    if (place === "none") {
      const reason = tree.whyRefused(job);
      if (reason !== undefined) {
        await this.tell({ dispatch, target, turn }, { status: "refused", reason }, true);
        return delivery.done();
      }
    }
    // Its run was asked to stop and has not stopped yet.
    if (before?.state === "left" && place === "unsettled") return delivery.later();
    tree.saveNote(id, { dispatch, target, lease, turn, state: "taken" });
    this.renewedMs.set(id, renewedMs);
    this.unsure.delete(id);
    this.finished.delete(id);
    if (place === "none") await tree.submit(id, job);
    if (place !== "settled") return;
    // We stopped our run while we were cut off, or because the dispatch was over, so it has no result, and the task runs again. Any
    // other end is told by `report`. Until then this job is kept: if we gave it back, another machine would run it again.
    if (before?.state !== "taken" && isCancelled(tree.endOf(id))) await tree.runAgain(id);
  }

  /**
   * The time since which no other machine can have got this job; undefined when one may have it.
   * @param sinceMs the earliest time of the delivery
   */
  private async renewedSince(lease: string, sinceMs: number): Promise<number | undefined> {
    const { broker, nowMs, ackWaitMs } = this.options;
    const askedMs = nowMs();
    if (askedMs - sinceMs < FRESH_WITHIN * ackWaitMs) return sinceMs;
    try {
      await broker.renew(lease);
    } catch {
      return undefined;
    }
    // After that time the broker answers a renewal in the same way even if it has given the job away.
    return nowMs() - sinceMs < ackWaitMs ? askedMs : undefined;
  }

  /** Tells the origin the end of a task, until the origin says that it knows. @returns whether there was something to tell */
  async report(id: string): Promise<boolean> {
    const { tree, broker } = this.options;
    const note = tree.note(id);
    if (note === undefined || tree.placeOf(id) !== "settled") return false;
    const end = tree.endOf(id);
    const isMoot =
      (note.state === "left" && isCancelled(end)) || (note.state === "over" && !hasCosts(end));
    if (end === undefined || isMoot) {
      this.forget(id);
      return false;
    }
    await this.tell(note, end, this.isSure(id));
    // Not earlier: until the result is at the broker, another machine must be able to take over from this one.
    await broker.finishJob(note.lease);
    this.finished.add(id);
    return true;
  }

  /**
   * Renews a job that has run here while the broker does not take its result, so that no other machine runs it again. May be called
   * during another call about it.
   */
  async keep(id: string): Promise<void> {
    const { tree, broker } = this.options;
    const note = tree.note(id);
    if (note?.state !== "taken" || this.finished.has(id)) return;
    const askedMs = this.options.nowMs();
    // A failure does no harm: no run must be stopped, and at worst another machine runs it once more.
    await broker.renew(note.lease).then(
      () => {
        if (this.isSure(id)) this.renewedMs.set(id, askedMs);
      },
      () => {},
    );
  }

  /** Whether no other machine can have got the job since this process took it. Once false, it stays so until the job comes again. */
  isSure(id: string): boolean {
    const renewedMs = this.renewedMs.get(id) ?? Number.NEGATIVE_INFINITY;
    const isRenewed =
      this.finished.has(id) || this.options.nowMs() - renewedMs < this.options.ackWaitMs;
    if (!isRenewed) this.unsure.add(id);
    return !this.unsure.has(id);
  }

  /** Handles the message that the origin no longer wants a dispatch. */
  async onOver(id: string, message: Delivery): Promise<void> {
    const note = this.options.tree.note(id);
    if (note !== undefined) await this.leave(id, note, "over");
    await message.done();
  }

  /** Renews a job that waits or runs here. Stops its run when renewals have failed for too long. */
  async renew(id: string): Promise<void> {
    const { tree, broker, nowMs, ackWaitMs } = this.options;
    const note = tree.note(id);
    if (note === undefined) return;
    const place = tree.placeOf(id);
    // The record was removed, or the task was never submitted. The broker or the origin sends the job again.
    if (place === "none") return this.forget(id);
    if (place === "settled") return this.keep(id);
    // The process that left the job may have died before it cancelled the task.
    if (note.state !== "taken") return tree.cancel(id);
    const askedMs = nowMs();
    // An earlier process has taken it, and we do not know for how long it was not renewed.
    if (!this.renewedMs.has(id)) this.unsure.add(id);
    const renewedMs = this.renewedMs.get(id) ?? askedMs;
    this.renewedMs.set(id, renewedMs);
    let withinMs = RENEWED_WITHIN * ackWaitMs;
    try {
      await broker.renew(note.lease);
      this.renewedMs.set(id, askedMs);
      // The broker gives the same answer when another machine has the job. That is possible after `ack_wait` without a renewal.
      withinMs = ackWaitMs;
    } catch {}
    if (nowMs() - renewedMs >= withinMs) await this.leave(id, note, "left");
  }

  /** Notes the new state, then stops the run. In this order, because the end of a stopped run must not be told as its result. */
  private async leave(id: string, note: Note, state: "left" | "over"): Promise<void> {
    const { tree } = this.options;
    if (state === "over" && this.isDone(id)) return this.forget(id);
    this.unsure.add(id);
    tree.saveNote(id, { ...note, state });
    if (tree.placeOf(id) === "unsettled") await tree.cancel(id);
    else if (state === "over" && this.isDone(id)) this.forget(id);
  }

  /** Whether nothing runs here, and its tree has been told what the run has cost. */
  private isDone(id: string): boolean {
    const { tree } = this.options;
    const place = tree.placeOf(id);
    return place === "none" || (place === "settled" && this.isTold(id));
  }

  private isTold(id: string): boolean {
    return this.finished.has(id) || !hasCosts(this.options.tree.endOf(id));
  }

  private forget(id: string): void {
    this.renewedMs.delete(id);
    this.finished.delete(id);
    this.unsure.delete(id);
    this.options.tree.removeNote(id);
  }

  private async tell(
    { dispatch, target, turn = "" }: Pick<Note, "dispatch" | "target" | "turn">,
    end: End,
    isSure: boolean,
  ): Promise<void> {
    const { name: machine, broker } = this.options;
    await broker.publishResult({ dispatch, target, machine, turn, is_sure: isSure, end });
  }
}

function hasCosts(end: End | undefined): boolean {
  return end !== undefined && end.status !== "refused" && (end.costs?.length ?? 0) > 0;
}

function isCancelled(end: End | undefined): boolean {
  return end?.status === "failed" && end.kind === "cancelled";
}
