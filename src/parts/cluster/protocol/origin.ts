/**
 * The side of the tree that has the tasks. All that it must not forget is the names in `processing/`: a task that is held for the
 * cluster is to be published, and no other one is. Publish and drop may be repeated, so a process that died leaves nothing to repair.
 * Calls about one dispatch must follow each other; a call that rejects is made again.
 */
import { type Dispatch, dispatchId } from "./dispatch.ts";
import type { Job, Result } from "./messages.ts";
import type { Delivery, OriginBroker, OriginTree } from "./ports.ts";

interface Sent {
  dispatch: Dispatch;
  target: string;
  /** When a machine last spoke of it, or the broker was last known to have it (monotonic ms). */
  heardMs: number;
  /** Set when all machines were asked for it since then. */
  askedMs?: number;
}

export interface OriginOptions {
  tree: OriginTree;
  broker: OriginBroker;
  nowMs: () => number;
  /** A job of which no machine has spoken for so long is looked for (ms). */
  silenceMs: number;
  /** Within this time a machine answers when it is asked (ms). */
  answerMs: number;
}

export class Origin {
  private readonly o: OriginOptions;
  private readonly sent = new Map<string, Sent>();

  constructor(options: OriginOptions) {
    this.o = options;
  }

  /**
   * Notes a dispatch of an earlier process. Before its first `publish`, a new process does so for each held task, and drops the other
   * jobs of this tree that the broker has.
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
   * Publishes the job of a held task that is new. Of one that was sent already, and of which no machine speaks, it first finds out that
   * the broker has it no longer, then asks the machines, and publishes it again at a later call when none has answered. In this
   * order: what left the broker is noted at a machine, or its result is at the broker.
   */
  async publish(job: Job): Promise<void> {
    const { dispatch, target } = job;
    const { tree, broker, nowMs } = this.o;
    const id = dispatchId(dispatch);
    const known = this.sent.get(id);
    if (!this.isDue(id)) return;
    if (tree.standing(dispatch, target) !== "waits") return;
    if (known === undefined) {
      // Noted first: if the task is cancelled now, `dropIfOver` finds what has been published.
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

  /** The dispatches that are, or may be, at the broker or a machine. */
  known(): string[] {
    return [...this.sent.keys()];
  }

  /** Takes back a job whose task is not held any more: it was cancelled, for example. */
  async dropIfOver(id: string): Promise<void> {
    const sent = this.sent.get(id);
    if (sent === undefined || this.o.tree.standing(sent.dispatch, sent.target) !== "over") return;
    await this.o.broker.dropJob(sent.target, id);
    this.sent.delete(id);
  }

  /** A machine says that it has this dispatch. */
  async onBeat(machine: string, dispatch: Dispatch, target: string): Promise<void> {
    const id = dispatchId(dispatch);
    const heard = { dispatch, target, heardMs: this.o.nowMs() };
    // What is known is looked at elsewhere, see `dropIfOver`: machines speak of all they have, again and again.
    if (this.sent.has(id)) {
      this.sent.set(id, heard);
      return;
    }
    const standing = this.o.tree.standing(dispatch, target);
    if (standing === "waits") this.sent.set(id, heard);
    if (standing === "over") await this.tellOver(machine, target, id);
  }

  /**
   * A machine says how a run has ended. First the settlement, then the receipt, then the message is done: a process that dies in
   * between does the rest when the message comes again.
   */
  async onResult(result: Result, message: Delivery): Promise<void> {
    const { dispatch, machine, target } = result;
    const { tree } = this.o;
    const id = dispatchId(dispatch);
    const isSettled =
      tree.standing(dispatch, target) === "waits" && (await tree.settle(dispatch, result));
    // It may have been let go in between, and will be held again.
    if (!isSettled && tree.standing(dispatch, target) !== "over") return message.later();
    await this.tellOver(machine, target, id);
    await message.done();
  }

  /** First the job goes: when this machine gives it up, no other one must take it. */
  private async tellOver(machine: string, target: string, id: string): Promise<void> {
    const { broker } = this.o;
    await broker.dropJob(target, id);
    this.sent.delete(id);
    await broker.publishOver(machine, id);
  }
}
