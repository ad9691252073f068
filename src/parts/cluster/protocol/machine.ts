/**
 * The side of a machine that works for other trees. A job becomes a task of its own mailbox, under the id of the dispatch, so a job
 * that is delivered twice becomes one task. What it has taken is noted before, and until the origin says that it is over. Calls about one
 * dispatch must follow each other; a call that rejects is made again.
 */
import { dispatchId } from "./dispatch.ts";
import type { End, Job } from "./messages.ts";
import type { Delivery, MachineBroker, MachineTree, Note } from "./ports.ts";

/** Within this part of `ack_wait` a machine must have renewed a job, or it stops the run: the rest is for stopping it. */
const RENEWED_WITHIN = 0.6;
/** A job that may have been in our hands for longer than this part of `ack_wait` is renewed before it is begun. */
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
  private readonly o: MachineOptions;
  /** When the broker was last asked to renew a job, and did (monotonic ms). */
  private readonly renewedMs = new Map<string, number>();
  /** Their results are at the broker, and their jobs are not: there is nothing to renew. */
  private readonly finished = new Set<string>();

  constructor(options: MachineOptions) {
    this.o = options;
  }

  /**
   * @param lease what renews this delivery
   * @param sinceMs it was not delivered before this time: since then it may have been in our hands, unread (monotonic ms)
   */
  async onJob(
    job: Job,
    lease: string,
    delivery: Delivery,
    sinceMs = this.o.nowMs(),
  ): Promise<void> {
    const { tree } = this.o;
    const { dispatch, target } = job;
    const id = dispatchId(dispatch);
    const renewedMs = await this.renewedSince(lease, sinceMs);
    // Another machine may have it by now. If not, it comes again.
    if (renewedMs === undefined) return;
    const before = tree.note(id);
    // A copy that was on its way when the origin dropped it.
    if (before?.state === "over") return delivery.done();
    const place = tree.placeOf(id);
    if (place === "none") {
      const reason = tree.whyRefused(job);
      if (reason !== undefined) {
        await this.tell({ dispatch, target }, { status: "refused", reason });
        return delivery.done();
      }
    }
    // The stop of its run has been asked for and has not happened yet.
    if (before?.state === "left" && place === "unsettled") return delivery.later();
    tree.saveNote(id, { dispatch, target, lease, state: "taken" });
    this.renewedMs.set(id, renewedMs);
    this.finished.delete(id);
    if (place === "none") await tree.submit(id, job);
    if (place !== "settled") return;
    // A run of ours that was stopped while we were cut off, or for a dispatch that was over: it has come to nothing. How another one has
    // ended is for `report`, and this job is kept until then: if it were given back, another machine would run it again.
    if (before?.state !== "taken" && isCancelled(tree.endOf(id))) await tree.runAgain(id);
  }

  /**
   * Since when a job that has come cannot have been given to another machine; undefined when it may have been.
   * @param sinceMs it was not delivered before this time
   */
  private async renewedSince(lease: string, sinceMs: number): Promise<number | undefined> {
    const { broker, nowMs, ackWaitMs } = this.o;
    const askedMs = nowMs();
    if (askedMs - sinceMs < FRESH_WITHIN * ackWaitMs) return sinceMs;
    try {
      await broker.renew(lease);
    } catch {
      return undefined;
    }
    // After that time the broker answers so, too, when it has given the job away.
    return nowMs() - sinceMs < ackWaitMs ? askedMs : undefined;
  }

  /** Tells the origin how a task has ended, as long as it has not said that it knows. @returns whether there was something to tell */
  async report(id: string): Promise<boolean> {
    const { tree, broker } = this.o;
    const note = tree.note(id);
    if (note === undefined || tree.placeOf(id) !== "settled") return false;
    const end = tree.endOf(id);
    if (end === undefined || (note.state === "left" && isCancelled(end)) || note.state === "over") {
      this.forget(id);
      return false;
    }
    await this.tell(note, end);
    // Only now: until the result is at the broker, another machine must take over from a dead one.
    await broker.finishJob(note.lease);
    this.finished.add(id);
    return true;
  }

  /**
   * Renews a job that has run here while the broker does not take its result: no other machine need run it. May be called during
   * another call about it.
   */
  async keep(id: string): Promise<void> {
    const { tree, broker } = this.o;
    const note = tree.note(id);
    if (note?.state !== "taken" || this.finished.has(id)) return;
    // There is no run to be stopped: at worst it runs once more.
    await broker.renew(note.lease).catch(() => {});
  }

  /** The origin wants nothing of it any more. */
  async onOver(id: string, message: Delivery): Promise<void> {
    const note = this.o.tree.note(id);
    if (note !== undefined) await this.leave(id, note, "over");
    await message.done();
  }

  /** Renews a job that waits or runs here. Stops its run when it could not be renewed for too long. */
  async renew(id: string): Promise<void> {
    const { tree, broker, nowMs, ackWaitMs } = this.o;
    const note = tree.note(id);
    if (note === undefined) return;
    const place = tree.placeOf(id);
    // Its record was removed, or it was never submitted: the broker or the origin sends it again.
    if (place === "none") return this.forget(id);
    if (place === "settled") return this.keep(id);
    // The process that left it may have died before it asked for its end.
    if (note.state !== "taken") return tree.cancel(id);
    const askedMs = nowMs();
    const renewedMs = this.renewedMs.get(id) ?? askedMs;
    this.renewedMs.set(id, renewedMs);
    let withinMs = RENEWED_WITHIN * ackWaitMs;
    try {
      await broker.renew(note.lease);
      this.renewedMs.set(id, askedMs);
      // The broker answers so, too, when it has given the job to another machine, as it may have done by now.
      withinMs = ackWaitMs;
    } catch {}
    if (nowMs() - renewedMs >= withinMs) await this.leave(id, note, "left");
  }

  /** Noted before it is stopped: the end of a run that we have stopped must not be told as its result. */
  private async leave(id: string, note: Note, state: "left" | "over"): Promise<void> {
    const { tree } = this.o;
    if (state === "over" && tree.placeOf(id) !== "unsettled") return this.forget(id);
    tree.saveNote(id, { ...note, state });
    if (tree.placeOf(id) === "unsettled") await tree.cancel(id);
    else if (state === "over") this.forget(id);
  }

  private forget(id: string): void {
    this.renewedMs.delete(id);
    this.finished.delete(id);
    this.o.tree.removeNote(id);
  }

  private async tell(note: Pick<Note, "dispatch" | "target">, end: End): Promise<void> {
    const { dispatch, target } = note;
    await this.o.broker.publishResult({ dispatch, target, machine: this.o.name, end });
  }
}

function isCancelled(end: End | undefined): boolean {
  return end?.status === "failed" && end.kind === "cancelled";
}
