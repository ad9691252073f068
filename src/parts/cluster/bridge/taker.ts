/**
 * The half of a bridge for a machine that works for others: takes jobs while it has room, and tells their progress and their
 * results. The protocol decides when a run must be stopped: see `Machine`.
 */
import { isSystemError, messageOf } from "../../../core/errors.ts";
import type { Received } from "../nats/intake.ts";
import { Machine } from "../protocol/machine.ts";
import { beatsOf, decodeJob } from "../protocol/message-codec.ts";
import { News } from "../protocol/news.ts";
import type { Delivery } from "../protocol/ports.ts";
import { restOfLook, usedMs } from "../rest.ts";
import type { Room } from "../tree/pool-room.ts";
import { type BridgeOptions, REFUSED_REST_MS } from "./options.ts";
import { orLater, type Turns } from "./turns.ts";

/** A result without a receipt is told again after the first time, then after twice that, and so on up to the longest time (ms). */
const TELL_AGAIN_MS = { first: 60_000, max: 3_600_000 };

/** After the disk has refused something it takes no jobs for this long (ms). */
const HINDERED_MS = 10_000;

export class Taker {
  /** It does not look for settled tasks before this time (monotonic ms). */
  restsUntilMs = Number.NEGATIVE_INFINITY;
  private readonly options: BridgeOptions;
  private readonly machine: Machine;
  /** When each result was told, to which servers, and after which pause it is told again (ms). */
  private readonly told = new Map<string, { atMs: number; birth: string; againMs: number }>();
  /** Dispatches whose results are being told. */
  private readonly telling = new Set<string>();
  /** It tells no result before this time, because the servers have just refused one (monotonic ms). */
  private refusedUntilMs = Number.NEGATIVE_INFINITY;
  /** Jobs that have arrived and are not submitted yet. */
  private readonly coming = new Set<string>();
  /** The progress of the runs that this machine has. */
  private readonly news = new News();
  /** Taken jobs whose tasks had settled at the last look. */
  private readonly ended = new Set<string>();
  /** Why this machine could not write what it must write, for example on a full disk, and when it tries again (monotonic ms). */
  private hindered: { why: string; untilMs: number } | undefined;

  constructor(
    options: BridgeOptions,
    private readonly turns: Turns,
  ) {
    this.options = options;
    const { name, machine: tree, broker, ackWaitMs } = options;
    this.machine = new Machine({ name, tree, broker, nowMs: () => performance.now(), ackWaitMs });
  }

  /** How many more jobs may come. */
  room(): number {
    // A job that has its note already counts in `open`, even while it is being submitted.
    const unnoted = [...this.coming].filter((id) => this.options.machine.note(id) === undefined);
    return Math.max(0, this.slots() - this.open() - unnoted.length);
  }

  open(): number {
    return this.options.machine.ids().filter((id) => !this.ended.has(id)).length;
  }

  slots(): number {
    return this.options.isDraining() ? 0 : this.place().slots;
  }

  /** Why it takes no tasks; undefined when it takes some. */
  whyNone(): string | undefined {
    return this.place().why;
  }

  /** Called when the disk has refused something. For a while it takes no jobs. */
  hinder(error: unknown): void {
    if (!isSystemError(error)) return;
    const untilMs = performance.now() + HINDERED_MS;
    this.hindered = { why: `it is hindered: ${messageOf(error)}`, untilMs };
  }

  private place(): Room {
    const { hindered } = this;
    if (hindered === undefined || performance.now() >= hindered.untilMs) return this.options.room();
    return { slots: 0, why: hindered.why };
  }

  onJob({ names, bytes, lease, turn, sinceMs, delivery }: Received): void {
    const id = names.at(-1) ?? "";
    const isKnown = this.options.machine.note(id) !== undefined || this.coming.has(id);
    // Several targets are asked at a time, so too many jobs may come. Another machine takes the rest.
    if (!isKnown && this.room() === 0) {
      delivery.later().catch((error: unknown) => this.turns.trouble(error));
      return;
    }
    this.coming.add(id);
    this.ended.delete(id);
    void this.turns.inTurn(id, async () => {
      // The job may run again. An earlier result says nothing about that run.
      this.told.delete(id);
      try {
        const job = this.turns.decoded("job", () => decodeJob(bytes, id));
        if (job === undefined) await delivery.done();
        else await orLater(delivery, () => this.machine.onJob(job, lease, delivery, sinceMs, turn));
      } catch (error) {
        this.hinder(error);
        throw error;
      } finally {
        this.coming.delete(id);
      }
    });
  }

  onOver(id: string, delivery: Delivery): void {
    void this.turns.inTurn(id, () => this.machine.onOver(id, delivery));
  }

  /** Tells the results of settled tasks. */
  async look(): Promise<void> {
    const { machine, broker } = this.options;
    if (performance.now() < this.restsUntilMs) return;
    const usedBeforeMs = usedMs();
    for (const id of this.told.keys()) if (machine.note(id) === undefined) this.told.delete(id);
    for (const id of this.ended) if (machine.note(id) === undefined) this.ended.delete(id);
    // The change that woke us is newer than the last listing, and wakes us only once.
    machine.listAnew();
    // A job that arrives again is left out until it is submitted or told.
    const running = machine.ids().filter((id) => !this.ended.has(id) && !this.coming.has(id));
    const justEnded = running.filter((id) => machine.placeOf(id) === "settled");
    for (const id of justEnded) this.ended.add(id);
    this.restsUntilMs = performance.now() + restOfLook(usedBeforeMs);
    if (justEnded.length > 0) broker.takeMore();
    const untold = [...this.ended].filter((id) => !this.telling.has(id));
    if (untold.length === 0 || performance.now() < this.refusedUntilMs) return;
    const birth = await broker.birth();
    const nowMs = performance.now();
    for (const id of untold) {
      const told = this.told.get(id);
      const isDue = told === undefined || told.birth !== birth || nowMs - told.atMs >= told.againMs;
      // Not awaited, so that an unanswered result does not delay those after it.
      if (isDue) void this.tellEnd(id, birth, nowMs);
    }
  }

  private async tellEnd(id: string, birth: string, nowMs: number): Promise<void> {
    this.telling.add(id);
    await this.turns.inTurn(id, async () => {
      try {
        if (!(await this.machine.report(id))) {
          // The task runs again.
          this.ended.delete(id);
          return;
        }
      } catch (error) {
        this.refusedUntilMs = performance.now() + REFUSED_REST_MS;
        throw error;
      }
      const before = this.told.get(id);
      const { first, max } = TELL_AGAIN_MS;
      const againMs = before?.birth === birth ? Math.min(2 * before.againMs, max) : first;
      this.told.set(id, { atMs: nowMs, birth, againMs });
    });
    this.telling.delete(id);
  }

  /** By tree: the number of results that were told more than once without an answer. */
  unanswered(): Map<string, number> {
    const counts = new Map<string, number>();
    for (const [id, { againMs }] of this.told) {
      const tree = this.options.machine.note(id)?.dispatch.tree;
      if (tree === undefined || againMs === TELL_AGAIN_MS.first) continue;
      counts.set(tree, (counts.get(tree) ?? 0) + 1);
    }
    return counts;
  }

  async beatAndRenew(): Promise<void> {
    const { machine } = this.options;
    const trees = new Set(machine.ids().map((id) => machine.note(id)?.dispatch.tree ?? ""));
    for (const tree of trees) if (tree !== "") this.beat(tree);
    const renew = (id: string): Promise<void> =>
      // Telling a result may take long while the servers do not answer. It must not delay the renewal of its job.
      this.ended.has(id)
        ? this.machine.keep(id)
        : this.turns.inTurn(id, () => this.machine.renew(id));
    await Promise.all(machine.ids().map(renew));
  }

  /** Tells a tree which of its dispatches this machine has. @param of only these; left out for all */
  beat(tree: string, of?: ReadonlySet<string>): void {
    const { machine, broker, name } = this.options;
    const has = machine.ids().flatMap((id) => {
      const note = machine.note(id);
      if (note?.state !== "taken" || note.dispatch.tree !== tree || of?.has(id) === false)
        return [];
      const run = this.news.of(id);
      const { dispatch, target, turn = "" } = note;
      const entry = { dispatch, target, turn, is_sure: this.machine.isSure(id) };
      return [run === undefined ? entry : { ...entry, run }];
    });
    for (const beat of beatsOf(name, has)) broker.beat(tree, beat);
  }

  /** Tells the progress of runs that has changed. */
  tellNews(): void {
    const { machine } = this.options;
    const changed = this.news.refresh(machine.news());
    const trees = new Set([...changed].map((id) => machine.note(id)?.dispatch.tree ?? ""));
    for (const tree of trees) if (tree !== "") this.beat(tree, changed);
  }
}
