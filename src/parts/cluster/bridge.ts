/** Carries tasks, results and receipts between a state tree and the broker. All that it must not forget is in the tree. */
import os from "node:os";
import type { Task } from "../../core/task.ts";
import type { NatsBroker, Received } from "./nats/broker.ts";
import { type Begun, begunOf } from "./protocol/begun.ts";
import { type Dispatch, dispatchId } from "./protocol/dispatch.ts";
import { Machine } from "./protocol/machine.ts";
import type { Machines } from "./protocol/machines.ts";
import {
  BadMessage,
  beatsOf,
  decodeBeat,
  decodeDrain,
  decodeJob,
  decodeLogAsk,
  decodeReport,
  decodeResult,
  encodeMessage,
  SERVES_MAX,
} from "./protocol/messages.ts";
import { News } from "./protocol/news.ts";
import { Origin } from "./protocol/origin.ts";
import { restOfLook } from "./rest.ts";
import type { LocalLogs } from "./tree/local-logs.ts";
import type { MachineFiles } from "./tree/machine-files.ts";
import type { Held, OriginFiles } from "./tree/origin-files.ts";

/** How often the tree is looked at (ms). */
const LOOK_MS = 200;
/** Within this time machines answer when they are asked (ms). */
const ANSWER_MS = 2000;
/** So many parts of `ack_wait` are between two renewals of a job, and between two heartbeats. */
const BEATS_PER_WAIT = 6;
/** A result without a receipt is told again after this time, then after twice that, and so on up to the longest one (ms). */
const TELL_AGAIN_MS = { first: 60_000, max: 3_600_000 };
/** How often a machine says how it is (ms). */
const REPORT_MS = 1000;
/** How often a machine looks how far its runs are (ms). */
const NEWS_MS = 1000;
/** So many jobs are published at once. */
const PUBLISH_MAX = 256;

export interface BridgeOptions {
  /** The name of this machine. */
  name: string;
  tree: string;
  origin: OriginFiles;
  machine: MachineFiles;
  /** As far as it is open to others: tests have another one. */
  broker: Pick<NatsBroker, keyof NatsBroker>;
  /** The targets that this machine serves; none: it only sends. */
  serves: readonly string[];
  /** Whether it sends tasks to others: it may have no right to look for them. */
  sends: boolean;
  /** How many tasks of others may be here at once. */
  room: () => number;
  /** Whether the pool of this tree is paused: then nothing more is sent, as nothing more starts here. */
  isPaused: () => boolean;
  /** Whether it takes no more tasks, so that it can be stopped. */
  isDraining: () => boolean;
  drain: (isOn: boolean) => void;
  /** The version of mailchute. */
  program: string;
  ackWaitMs: number;
  /** The name at the machine of the agent of a task. */
  agentOf: (task: Task) => string;
  /** Of the runs that this machine has, or had, for others. */
  logs: Pick<LocalLogs, "part">;
  /** What the other machines say of themselves. */
  machines: Machines;
  /** Tells what has changed. */
  publish: (view: BridgeView) => void;
  tell: (message: string) => void;
}

/** What a bridge does, for those who look at it. */
export interface BridgeView {
  /** Tasks of this tree that are on their way, by target. */
  held: readonly Held[];
  /** By dispatch: what the machine says that has it. */
  begun: ReadonlyMap<string, Begun>;
  /** By tree: how many results are told again and again, without an answer. */
  unanswered: ReadonlyMap<string, number>;
}

export class Bridge {
  private readonly o: BridgeOptions;
  private readonly origin: Origin;
  private readonly machine: Machine;
  private readonly turns = new Map<string, Promise<void>>();
  /** When and to which servers each result was told. */
  private readonly told = new Map<string, { atMs: number; birth: string; againMs: number }>();
  private readonly timers: NodeJS.Timeout[] = [];
  /** Jobs that have come and are not submitted yet. */
  private readonly coming = new Set<string>();
  /** By dispatch: what the machine has said that has it. */
  private readonly begun = new Map<string, Begun>();
  /** Of the runs that this machine has. */
  private readonly news = new News();
  /** What was taken and has settled, as far as the last look has seen. */
  private readonly ended = new Set<string>();
  private isLooking = false;
  private isToLookAgain = false;
  private hasAdopted = false;
  /** Before this time the names of the tasks that wait for results are not read again (monotonic ms). */
  private heldAtMs = Number.NEGATIVE_INFINITY;
  private takenAtMs = Number.NEGATIVE_INFINITY;
  private isOver = false;
  private wakeTimer: NodeJS.Timeout | undefined;

  constructor(options: BridgeOptions) {
    this.o = options;
    const { name, origin, machine, broker, ackWaitMs } = options;
    const nowMs = (): number => performance.now();
    const silenceMs = 3 * ackWaitMs;
    const answerMs = Math.min(ANSWER_MS, ackWaitMs);
    this.origin = new Origin({ tree: origin, broker, nowMs, silenceMs, answerMs });
    this.machine = new Machine({ name, tree: machine, broker, nowMs, ackWaitMs });
  }

  start(): void {
    const { broker, serves, name } = this.o;
    void broker.results((message) => this.onResult(message));
    broker.onBeats((bytes, sender) => this.onBeat(bytes, sender));
    broker.onReports((bytes, sender) => {
      const report = this.decoded("report", () => decodeReport(bytes, sender));
      if (report !== undefined) this.o.machines.take(report, performance.now());
    });
    broker.onControls((bytes) => {
      const asked = this.decoded("control", () => decodeDrain(bytes));
      if (asked === undefined) return;
      try {
        this.o.drain(asked.is_draining);
      } catch (error) {
        this.trouble(error);
      }
      this.report();
    });
    broker.onLogAsks(async (bytes, asking) => {
      const ask = this.decoded("question for a log", () => decodeLogAsk(bytes, asking));
      try {
        return ask && (await this.o.logs.part(ask));
      } catch (error) {
        this.trouble(error);
        return undefined;
      }
    });
    broker.onAsks((asking) => {
      if (this.o.serves.length === 0 && this.o.machine.ids().length === 0) return;
      this.beat(asking);
      this.report();
    });
    void broker.overs(({ names, delivery }) => {
      const id = names.at(-1) ?? "";
      void this.inTurn(id, () => this.machine.onOver(id, delivery));
    });
    for (const target of new Set([...serves, ...(serves.length > 0 ? [name] : [])]))
      void broker.jobsFor(
        target,
        () => this.room(),
        (message) => this.onJob(message),
      );
    // Machines that are there need not be waited for.
    broker.ask().catch((error: unknown) => this.trouble(error));
    this.every(LOOK_MS, () => this.look());
    this.every(REPORT_MS, async () => this.report());
    this.every(NEWS_MS, async () => this.tellNews());
    this.every(this.o.ackWaitMs / BEATS_PER_WAIT, async () => this.beatAndRenew());
  }

  /** Something in the tree has changed: looks at it, when its rest is over. */
  wake(): void {
    if (this.isOver) return;
    if (this.isLooking) {
      this.isToLookAgain = true;
      return;
    }
    const restMs = Math.max(this.heldAtMs, this.takenAtMs) - performance.now();
    if (restMs <= 0) this.look().catch((error: unknown) => this.trouble(error));
    else
      this.wakeTimer ??= setTimeout(() => {
        this.wakeTimer = undefined;
        this.wake();
      }, restMs);
  }

  async stop(): Promise<void> {
    for (const timer of this.timers) clearInterval(timer);
    clearTimeout(this.wakeTimer);
    this.isOver = true;
    await Promise.all(this.turns.values());
    await this.o.broker.close();
  }

  private every(ms: number, work: () => Promise<void>): void {
    const run = (): void => {
      work().catch((error: unknown) => this.trouble(error));
    };
    this.timers.push(setInterval(run, ms));
    run();
  }

  /** How many more jobs may come. */
  private room(): number {
    // One that is noted, and still being submitted, has its slot already.
    const unnoted = [...this.coming].filter((id) => this.o.machine.note(id) === undefined);
    return Math.max(0, this.slots() - this.open() - unnoted.length);
  }

  private open(): number {
    return this.o.machine.ids().filter((id) => !this.ended.has(id)).length;
  }

  private report(): void {
    const { broker, name, serves, program, isDraining } = this.o;
    broker.report({
      machine: name,
      program,
      serves: serves.slice(0, SERVES_MAX),
      room: this.slots(),
      open: this.open(),
      is_draining: isDraining(),
      load: os.loadavg()[0] ?? 0,
      cpus: os.availableParallelism(),
    });
  }

  private slots(): number {
    return this.o.isDraining() ? 0 : this.o.room();
  }

  private async look(): Promise<void> {
    if (this.isLooking) return;
    this.isLooking = true;
    try {
      await this.lookAtHeld();
      await this.lookAtTaken();
    } finally {
      this.isLooking = false;
    }
    if (!this.isToLookAgain) return;
    this.isToLookAgain = false;
    this.wake();
  }

  private async lookAtHeld(): Promise<void> {
    const { origin, broker } = this.o;
    const fromMs = performance.now();
    if (fromMs < this.heldAtMs) return;
    const held = origin.held();
    const toMs = performance.now();
    this.heldAtMs = toMs + restOfLook(toMs - fromMs);
    if (!this.hasAdopted) {
      for (const { dispatch, target } of held) this.origin.adopt(dispatch, target);
      // Only we publish jobs of this tree: what is not held was cancelled while no bridge ran.
      const ids = new Set(held.map(({ id }) => id));
      const jobs = this.o.sends || held.length > 0 ? await broker.jobs() : [];
      for (const { id, target } of jobs) if (!ids.has(id)) await broker.dropJob(target, id);
      this.hasAdopted = true;
    }
    const due = this.o.isPaused() ? [] : held.filter(({ id }) => this.origin.isDue(id));
    await Promise.all(
      due.slice(0, PUBLISH_MAX).map(({ dispatch, target }) => this.publish(dispatch, target)),
    );
    const waiting = new Set(held.map(({ id }) => id));
    const lost = this.origin.known().filter((id) => !waiting.has(id));
    await Promise.all(lost.map((id) => this.inTurn(id, () => this.origin.dropIfOver(id))));
    for (const id of this.begun.keys()) if (!waiting.has(id)) this.begun.delete(id);
    try {
      this.o.publish({ held, begun: this.begun, unanswered: this.unanswered() });
    } catch (error) {
      // What people see may be old on a full disk; tasks and results go on.
      this.trouble(error);
    }
  }

  private publish(dispatch: Dispatch, target: string): Promise<void> {
    return this.inTurn(dispatchId(dispatch), async () => {
      const { origin, agentOf, name } = this.o;
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
      await this.origin.publish(job);
    });
  }

  /** Tells the ends of tasks that have settled. */
  private async lookAtTaken(): Promise<void> {
    const { machine, broker } = this.o;
    const fromMs = performance.now();
    if (fromMs < this.takenAtMs) return;
    for (const id of this.told.keys()) if (machine.note(id) === undefined) this.told.delete(id);
    for (const id of this.ended) if (machine.note(id) === undefined) this.ended.delete(id);
    // What has woken us is newer than the last listing, and wakes us once.
    machine.listAnew();
    const running = machine.ids().filter((id) => !this.ended.has(id));
    const justEnded = running.filter((id) => machine.placeOf(id) === "settled");
    for (const id of justEnded) this.ended.add(id);
    const toMs = performance.now();
    this.takenAtMs = toMs + restOfLook(toMs - fromMs);
    if (justEnded.length > 0) broker.takeMore();
    const settled = [...this.ended];
    if (settled.length === 0) return;
    const birth = await broker.birth();
    const nowMs = performance.now();
    const due = settled.filter((id) => {
      const told = this.told.get(id);
      return told === undefined || told.birth !== birth || nowMs - told.atMs >= told.againMs;
    });
    await Promise.all(
      due.map((id) =>
        this.inTurn(id, async () => {
          await this.machine.report(id);
          const before = this.told.get(id);
          const { first, max } = TELL_AGAIN_MS;
          const againMs = before?.birth === birth ? Math.min(2 * before.againMs, max) : first;
          this.told.set(id, { atMs: nowMs, birth, againMs });
        }),
      ),
    );
  }

  private unanswered(): Map<string, number> {
    const counts = new Map<string, number>();
    for (const [id, { againMs }] of this.told) {
      const tree = this.o.machine.note(id)?.dispatch.tree;
      if (tree === undefined || againMs === TELL_AGAIN_MS.first) continue;
      counts.set(tree, (counts.get(tree) ?? 0) + 1);
    }
    return counts;
  }

  private async beatAndRenew(): Promise<void> {
    const { machine } = this.o;
    const trees = new Set(machine.ids().map((id) => machine.note(id)?.dispatch.tree ?? ""));
    for (const tree of trees) if (tree !== "") this.beat(tree);
    await Promise.all(machine.ids().map((id) => this.inTurn(id, () => this.machine.renew(id))));
  }

  /** Says what is here of this tree. @param of left out: all of it */
  private beat(tree: string, of?: ReadonlySet<string>): void {
    const { machine, broker, name } = this.o;
    const has = machine.ids().flatMap((id) => {
      const note = machine.note(id);
      if (note?.state !== "taken" || note.dispatch.tree !== tree || of?.has(id) === false)
        return [];
      const run = this.news.of(id);
      const { dispatch, target } = note;
      return [{ dispatch, target, ...(run === undefined ? {} : { run }) }];
    });
    for (const beat of beatsOf(name, has)) broker.beat(tree, beat);
  }

  /** Says how far runs are of which something new is known. */
  private tellNews(): void {
    const { machine } = this.o;
    const changed = this.news.refresh(machine.news());
    const trees = new Set([...changed].map((id) => machine.note(id)?.dispatch.tree ?? ""));
    for (const tree of trees) if (tree !== "") this.beat(tree, changed);
  }

  private onJob({ names, bytes, lease, delivery }: Received): void {
    const id = names.at(-1) ?? "";
    const isKnown = this.o.machine.note(id) !== undefined || this.coming.has(id);
    // More than one target is asked for at a time. What is too much is for another machine.
    if (!isKnown && this.room() === 0) {
      delivery.later().catch((error: unknown) => this.trouble(error));
      return;
    }
    this.coming.add(id);
    this.ended.delete(id);
    void this.inTurn(id, async () => {
      try {
        const job = this.decoded("job", () => decodeJob(bytes, id));
        if (job === undefined) await delivery.done();
        else await this.orLater(delivery, () => this.machine.onJob(job, lease, delivery));
      } finally {
        this.coming.delete(id);
      }
    });
  }

  private onResult({ names, bytes, delivery }: Received): void {
    const [target = "", machine = "", id = ""] = names.slice(-3);
    void this.inTurn(id, async () => {
      const result = this.decoded("result", () => {
        const decoded = decodeResult(bytes, id, { target, machine });
        if (decoded.dispatch.tree === this.o.tree) return decoded;
        // Its machine tells it again.
        throw new BadMessage(
          `it is for the tree ${decoded.dispatch.tree}: this machine had another tree, or two trees share a name`,
        );
      });
      if (result === undefined) await delivery.done();
      else await this.orLater(delivery, () => this.origin.onResult(result, delivery));
    });
  }

  private onBeat(bytes: Buffer, sender: string): void {
    const beat = this.decoded("heartbeat", () => decodeBeat(bytes, this.o.tree, sender));
    if (beat === undefined) return;
    for (const { dispatch, target, run } of beat.has) {
      const id = dispatchId(dispatch);
      this.begun.set(id, begunOf(this.begun.get(id), beat.machine, run, Date.now()));
      void this.inTurn(id, () => this.origin.onBeat(beat.machine, dispatch, target));
    }
  }

  private decoded<T>(what: string, decode: () => T): T | undefined {
    try {
      return decode();
    } catch (error) {
      if (!(error instanceof BadMessage)) throw error;
      this.o.tell(`refused a ${what}: ${error.message}`);
      return undefined;
    }
  }

  private async orLater(delivery: Received["delivery"], act: () => Promise<void>): Promise<void> {
    try {
      await act();
    } catch (error) {
      await delivery.later();
      throw error;
    }
  }

  /** Calls about one dispatch follow each other. Never rejects: what failed is called again later. */
  private inTurn(id: string, act: () => Promise<void>): Promise<void> {
    const before = this.turns.get(id) ?? Promise.resolve();
    const turn = before.then(act).catch((error: unknown) => this.trouble(error));
    this.turns.set(id, turn);
    void turn.then(() => {
      if (this.turns.get(id) === turn) this.turns.delete(id);
    });
    return turn;
  }

  private trouble(error: unknown): void {
    this.o.tell(error instanceof Error ? error.message : String(error));
  }
}
