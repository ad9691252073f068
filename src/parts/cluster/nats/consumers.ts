/** Finds the consumers of this machine, and makes lost ones again. Tells from them whether these are still the same servers. */
import { ErrInvalidConfig } from "../../../core/errors.ts";
import { type BrokerOptions, explain } from "./connect.ts";
import { birthOf, isMissing, type Made, makeAll, makeMissing } from "./make.ts";
import type { JetStream, JetStreamManager, PullConsumer } from "./packages.ts";
import { type Consumer, homeConsumer, MS_NS, machineConsumer, targetConsumer } from "./streams.ts";

export class Consumers {
  /** See `birthOf`. Undefined while it is not known. */
  private born: Promise<string> | undefined;
  private making: Promise<void> | undefined;

  constructor(
    private readonly options: BrokerOptions,
    private readonly js: JetStream,
    private readonly jsm: JetStreamManager,
  ) {}

  /** A text that identifies these servers. If it changes, they have lost everything. */
  birth(): Promise<string> {
    this.born ??= this.findBirth();
    return this.born;
  }

  /** Called when these may be other servers now. */
  forgetBirth(): void {
    this.born = undefined;
  }

  /** Asks about the machine's own consumer: each machine may do that, and the consumer lives as long as the stream of jobs. */
  private async findBirth(): Promise<string> {
    try {
      const own = await this.get(targetConsumer(this.options.name));
      return birthOf(await own.info(true));
    } catch (error) {
      this.born = undefined;
      throw error;
    }
  }

  /** Finds a consumer. If the servers have lost it, makes it again, if this machine has the right. */
  async get(consumer: Consumer): Promise<PullConsumer> {
    const { stream, name } = consumer;
    let pull: PullConsumer;
    try {
      pull = await this.js.consumers.get(stream, name);
    } catch (error) {
      if (!isMissing(error)) throw explain(error, `take messages of ${name}`);
      await this.makeMissing(consumer);
      pull = await this.js.consumers.get(stream, name);
    }
    const { ackWaitMs } = this.options;
    const waitMs = Number((await pull.info(true)).config["ack_wait"]) / MS_NS;
    if (waitMs === ackWaitMs) return pull;
    throw new ErrInvalidConfig(
      `ack_wait_ms is ${ackWaitMs} here and ${waitMs} at the servers: set it to the same value at all machines, then run mailchute cluster init at one of them`,
      { path: "cluster.ack_wait_ms", phase: "cluster" },
    );
  }

  private async makeMissing(consumer: Consumer): Promise<void> {
    const { replicas, ackWaitMs, consumers } = this.options;
    try {
      this.making ??= makeMissing(this.jsm, replicas, ackWaitMs, consumers).finally(() => {
        this.making = undefined;
      });
      await this.making;
      await makeMissing(this.jsm, replicas, ackWaitMs, [consumer]);
    } catch (error) {
      throw explain(error, `make ${consumer.name}, which the servers do not have,`);
    }
  }

  /** Makes all streams and consumers that are needed, and corrects their settings. */
  makeAll(): Promise<Made[]> {
    const { name, replicas, ackWaitMs, consumers } = this.options;
    const own = [targetConsumer(name), homeConsumer(name), machineConsumer(name)];
    const all = new Map([...own, ...consumers].map((one) => [`${one.stream} ${one.name}`, one]));
    return makeAll(this.jsm, replicas, ackWaitMs, [...all.values()]);
  }
}
