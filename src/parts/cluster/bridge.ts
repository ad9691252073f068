/** Carries tasks, results and receipts between a state tree and the broker. The tree holds everything that it must not forget. */
import os from "node:os";
import { Looker } from "./bridge/looker.ts";
import { BEATS_PER_WAIT, type BridgeOptions } from "./bridge/options.ts";
import { Sender } from "./bridge/sender.ts";
import { Taker } from "./bridge/taker.ts";
import { Turns } from "./bridge/turns.ts";
import { decodeDrain, decodeLogAsk, decodeReport } from "./protocol/message-codec.ts";
import { SERVES_MAX, WHY_CHARS_MAX } from "./protocol/messages.ts";
import type { Held } from "./tree/origin-files.ts";

/** How often it looks at the tree (ms). */
const LOOK_MS = 200;
const RENAME =
  "give each a name of its own in cluster: name:, because logs and receipts reach only one of them";
/** How often a machine reports its state (ms). */
const REPORT_MS = 1000;
/** How often a machine reads the progress of its runs (ms). */
const NEWS_MS = 1000;

export class Bridge {
  private readonly options: BridgeOptions;
  private readonly turns: Turns;
  /** The half for the tasks of this tree, and the half for tasks of others. */
  private readonly sender: Sender;
  private readonly taker: Taker;
  private readonly lookers: readonly Looker[];
  private readonly timers: NodeJS.Timeout[] = [];

  constructor(options: BridgeOptions) {
    this.options = options;
    this.turns = new Turns(options.tell);
    this.sender = new Sender(options, this.turns, (held) => this.show(held));
    this.taker = new Taker(options, this.turns);
    this.lookers = [this.sender, this.taker].map(
      (half) => new Looker(half, (error) => this.turns.trouble(error)),
    );
  }

  start(): void {
    const { broker, serves, name, tree } = this.options;
    void broker.results((message) => this.sender.onResult(message));
    broker.onBeats((bytes, machine) => this.sender.onBeat(bytes, machine));
    broker.onReports((bytes, sender) => {
      const report = this.turns.decoded("report", () => decodeReport(bytes, sender));
      if (report === undefined) return;
      if (report.machine === name && (report.tree ?? tree) !== tree)
        this.options.tell(
          `another machine is called ${name}, too (its tree is ${report.tree}): ${RENAME}`,
        );
      this.options.machines.take(report, performance.now());
    });
    broker.onControls((bytes) => {
      const asked = this.turns.decoded("control", () => decodeDrain(bytes));
      if (asked === undefined) return;
      try {
        this.options.drain(asked.is_draining);
      } catch (error) {
        this.turns.trouble(error);
      }
      this.report();
    });
    broker.onLogAsks(async (bytes, asking) => {
      const ask = this.turns.decoded("question for a log", () => decodeLogAsk(bytes, asking));
      try {
        return ask && (await this.options.logs.part(ask));
      } catch (error) {
        this.turns.trouble(error);
        return undefined;
      }
    });
    broker.onAsks((asking) => {
      if (this.options.serves.length === 0 && this.options.machine.ids().length === 0) return;
      this.taker.beat(asking);
      this.report();
    });
    void broker.overs(({ names, delivery }) => this.taker.onOver(names.at(-1) ?? "", delivery));
    for (const target of new Set([...serves, ...(serves.length > 0 ? [name] : [])]))
      void broker.jobsFor(
        target,
        () => this.taker.room(),
        (message) => this.taker.onJob(message),
      );
    // Machines that are there answer at once, so we need not wait for their next heartbeat.
    broker.ask().catch((error: unknown) => this.turns.trouble(error));
    for (const looker of this.lookers) this.every(LOOK_MS, () => looker.look());
    this.every(REPORT_MS, async () => this.report());
    this.every(NEWS_MS, async () => this.taker.tellNews());
    this.every(this.options.ackWaitMs / BEATS_PER_WAIT, () => this.taker.beatAndRenew());
  }

  /** Called when something in the tree has changed. */
  wake(): void {
    for (const looker of this.lookers) looker.wake();
  }

  async stop(): Promise<void> {
    for (const timer of this.timers) clearInterval(timer);
    for (const looker of this.lookers) looker.stop();
    await this.turns.over();
    await this.options.broker.close();
  }

  private every(ms: number, work: () => Promise<void>): void {
    const run = (): void => {
      work().catch((error: unknown) => this.turns.trouble(error));
    };
    this.timers.push(setInterval(run, ms));
    run();
  }

  private report(): void {
    const { broker, name, tree, serves, program, isDraining } = this.options;
    const why = serves.length === 0 ? undefined : this.taker.whyNone();
    broker.report({
      machine: name,
      tree,
      ...(why === undefined ? {} : { why: why.slice(0, WHY_CHARS_MAX) }),
      program,
      serves: serves.slice(0, SERVES_MAX),
      room: this.taker.slots(),
      open: this.taker.open(),
      is_draining: isDraining(),
      load: os.loadavg()[0] ?? 0,
      cpus: os.availableParallelism(),
    });
  }

  private show(held: readonly Held[]): void {
    const { begun } = this.sender;
    try {
      this.options.publish({ held, begun, unanswered: this.taker.unanswered() });
    } catch (error) {
      // On a full disk people may see old data, but tasks and results go on.
      this.taker.hinder(error);
      this.turns.trouble(error);
    }
  }
}
