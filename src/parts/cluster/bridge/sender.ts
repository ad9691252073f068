/**
 * The half of a bridge for the tree that has the tasks: sends tasks that are held for the cluster, and takes their results. The
 * protocol decides when a task may be sent: see `Origin`.
 */

import type { Received } from "../nats/intake.ts";
import { type Begun, begunOf } from "../protocol/begun.ts";
import { type Dispatch, dispatchId } from "../protocol/dispatch.ts";
import { BadMessage, decodeBeat, decodeResult, encodeMessage } from "../protocol/message-codec.ts";
import { Origin } from "../protocol/origin.ts";
import { restOfLook, usedMs } from "../rest.ts";
import type { Held } from "../tree/origin-files.ts";
import { type BridgeOptions, REFUSED_REST_MS } from "./options.ts";
import { orLater, type Turns } from "./turns.ts";

/** Machines answer a question within this time (ms). */
const ANSWER_MS = 2000;
/** At most this many jobs are published at once. */
const PUBLISH_MAX = 256;

export class Sender {
  /** By dispatch: the machine that has it, and what that machine reports. */
  readonly begun = new Map<string, Begun>();
  /** It does not read the names of waiting tasks again before this time (monotonic ms). */
  restsUntilMs = Number.NEGATIVE_INFINITY;
  private readonly options: BridgeOptions;
  private readonly origin: Origin;
  private hasAdopted = false;

  /** @param show called after each look with the tasks that wait for results */
  constructor(
    options: BridgeOptions,
    private readonly turns: Turns,
    private readonly show: (held: readonly Held[]) => void,
  ) {
    this.options = options;
    const { origin: tree, broker, ackWaitMs } = options;
    const nowMs = (): number => performance.now();
    const answerMs = Math.min(ANSWER_MS, ackWaitMs);
    this.origin = new Origin({
      tree,
      broker,
      nowMs,
      silenceMs: 3 * ackWaitMs,
      answerMs,
      ackWaitMs,
    });
  }

  /** Sends the due tasks, unless it rests. */
  async look(): Promise<void> {
    const { origin, broker } = this.options;
    if (performance.now() < this.restsUntilMs) return;
    const usedBeforeMs = usedMs();
    const held = origin.held();
    this.restsUntilMs = performance.now() + restOfLook(usedBeforeMs);
    if (!this.hasAdopted) {
      for (const { dispatch, target } of held) this.origin.adopt(dispatch, target);
      // Only we publish jobs of this tree. So a job whose task is not held was cancelled while no bridge ran.
      const ids = new Set(held.map(({ id }) => id));
      const jobs = this.options.sends || held.length > 0 ? await broker.jobs() : [];
      for (const { id, target } of jobs) if (!ids.has(id)) await broker.dropJob(target, id);
      this.hasAdopted = true;
    }
    const due = this.options.isPaused() ? [] : held.filter(({ id }) => this.origin.isDue(id));
    await Promise.all(
      due.slice(0, PUBLISH_MAX).map(({ dispatch, target }) => this.publish(dispatch, target)),
    );
    const waiting = new Set(held.map(({ id }) => id));
    const lost = this.origin.known().filter((id) => !waiting.has(id));
    const drop = (id: string) => this.orRest(() => this.origin.dropIfOver(id));
    await Promise.all(lost.map((id) => this.turns.inTurn(id, () => drop(id))));
    for (const id of this.begun.keys()) if (!waiting.has(id)) this.begun.delete(id);
    this.show(held);
  }

  onResult({ names, bytes, delivery }: Received): void {
    const [target = "", machine = "", id = ""] = names.slice(-3);
    void this.turns.inTurn(id, async () => {
      const result = this.turns.decoded("result", () => {
        const decoded = decodeResult(bytes, id, { target, machine });
        if (decoded.dispatch.tree === this.options.tree) return decoded;
        // The machine tells its result again later.
        throw new BadMessage(
          `it is for the tree ${decoded.dispatch.tree}: this machine had another tree, or two trees share a name`,
        );
      });
      if (result === undefined) await delivery.done();
      else await orLater(delivery, () => this.origin.onResult(result, delivery));
    });
  }

  onBeat(bytes: Buffer, sender: string): void {
    const beat = this.turns.decoded("heartbeat", () =>
      decodeBeat(bytes, this.options.tree, sender),
    );
    if (beat === undefined) return;
    const { machine } = beat;
    for (const { run, ...entry } of beat.has) {
      const { dispatch, turn = "" } = entry;
      const id = dispatchId(dispatch);
      if (this.origin.isNewest(id, machine, turn))
        this.begun.set(id, begunOf(this.begun.get(id), machine, run, Date.now()));
      void this.turns.inTurn(id, () => this.origin.onBeat(machine, entry));
    }
  }

  private publish(dispatch: Dispatch, target: string): Promise<void> {
    return this.turns.inTurn(dispatchId(dispatch), async () => {
      const { origin, agentOf, name } = this.options;
      const job = origin.jobOf(dispatch, target, agentOf);
      if (job === undefined) return;
      try {
        encodeMessage(job);
      } catch (error) {
        if (!(error instanceof BadMessage)) throw error;
        const end = { status: "refused", reason: error.message } as const;
        await origin.settle(dispatch, { dispatch, target, machine: name, end });
        return;
      }
      await this.orRest(() => this.origin.publish(job));
    });
  }

  /** After a refusal of the servers it rests, so that it does not ask them again at once. */
  private async orRest(act: () => Promise<void>): Promise<void> {
    try {
      await act();
    } catch (error) {
      this.restsUntilMs = Math.max(this.restsUntilMs, performance.now() + REFUSED_REST_MS);
      throw error;
    }
  }
}
