/**
 * The side of the tree that has the tasks. The names in `processing/` hold everything that it must not forget: a task that is held
 * for the cluster must be published, and no other one. Publish and drop may be repeated, so a dead process leaves nothing to
 * repair. Calls about one dispatch must follow each other; a call that rejects is made again.
 */
import { type Dispatch, dispatchId } from "./dispatch.ts";
import type { Job, Result } from "./messages.ts";
import type { Delivery, OriginBroker, OriginTree } from "./ports.ts";

interface Sent {
  dispatch: Dispatch;
  target: string;
  /** When a machine last reported it, or the broker was last known to have it (monotonic ms). */
  heardMs: number;
  /** When all machines were asked for it after that (monotonic ms); undefined when they were not asked. */
  askedMs?: number;
}

export interface OriginOptions {
  tree: OriginTree;
  broker: OriginBroker;
  nowMs: () => number;
  /** A job that no machine has reported for this long is looked for (ms). */
  silenceMs: number;
  /** A machine answers a question within this time (ms). */
  answerMs: number;
}

export class Origin {
  private readonly o: OriginOptions;
  private readonly sent = new Map<string, Sent>();

  constructor(options: OriginOptions) {
    this.o = options;
  }

  /**
   * Notes a dispatch of an earlier process. A new process does so for each held task before its first `publish`, and drops all
   * other jobs of this tree at the broker.
   */
  adopt(dispatch: Dispatch, target: string): void {
    this.sent.set(dispatchId(dispatch), { dispatch, target, heardMs: Number.NEGATIVE_INFINITY });
  }

  /** Whether `publish` has something to do for the dispatch with this id. */
  isDue(id: string): boolean {
    const { nowMs, silenceMs, answerMs } = this.o;
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
    const { tree, broker, nowMs } = this.o;
    const id = dispatchId(dispatch);
    const known = this.sent.get(id);
    if (!this.isDue(id)) return;
    if (tree.standing(dispatch, target) !== "waits") return;
    if (known === undefined) {
      // Noted first, so that `dropIfOver` finds the published job if the task is cancelled now.
      this.adopt(dispatch, target);
      await broker.publishJob(job);
    } else if (known.askedMs === undefined) {
      if (!(await broker.hasJob(target, id))) {
        await broker.ask();
        known.askedMs = nowMs();
        return;
      }
    } else if (!(await broker.hasResult(id))) await broker.publishJob(job);
    this.sent.set(id, { dispatch, target, heardMs: nowMs() });
  }

  /** The ids of dispatches that are or may be at the broker or a machine. */
  known(): string[] {
    return [...this.sent.keys()];
  }

  /** Takes back a job whose task is no longer held, for example because it was cancelled. */
  async dropIfOver(id: string): Promise<void> {
    const sent = this.sent.get(id);
    if (sent === undefined || this.o.tree.standing(sent.dispatch, sent.target) !== "over") return;
    await this.o.broker.dropJob(sent.target, id);
    this.sent.delete(id);
  }

  /** Handles the report of a machine that it has this dispatch. */
  async onBeat(machine: string, dispatch: Dispatch, target: string): Promise<void> {
    const id = dispatchId(dispatch);
    const heard = { dispatch, target, heardMs: this.o.nowMs() };
    // Machines report all their dispatches again and again. A known one is only noted here; `dropIfOver` checks it.
    if (this.sent.has(id)) {
      this.sent.set(id, heard);
      return;
    }
    const standing = this.o.tree.standing(dispatch, target);
    if (standing === "waits") this.sent.set(id, heard);
    if (standing === "over") await this.tellOver(machine, target, id);
  }

  /**
   * Handles the result of a run: settles the task, sends the receipt, then marks the message as done. After a crash in between the
   * message comes again, and the rest is done.
   */
  async onResult(result: Result, message: Delivery): Promise<void> {
    const { dispatch, machine, target } = result;
    const { tree } = this.o;
    const id = dispatchId(dispatch);
    const isSettled =
      tree.standing(dispatch, target) === "waits" && (await tree.settle(dispatch, result));
    // The task may have left its gate for a moment, and will be held again.
    if (!isSettled && tree.standing(dispatch, target) !== "over") return message.later();
    await this.tellOver(machine, target, id);
    await message.done();
  }

  /** Drops the job first, so that no other machine takes it when this one gives it up. */
  private async tellOver(machine: string, target: string, id: string): Promise<void> {
    const { broker } = this.o;
    await broker.dropJob(target, id);
    this.sent.delete(id);
    await broker.publishOver(machine, id);
  }
}
