/** The consumers of this machine: it finds them, makes again what the servers have lost, and tells from them which servers these are. */
import { type BrokerOptions, explain } from "./connect.ts";
import { birthOf, isMissing, type Made, makeAll, makeMissing } from "./make.ts";
import type { JetStream, JetStreamManager, PullConsumer } from "./packages.ts";
import { type Consumer, homeConsumer, MS_NS, machineConsumer, targetConsumer } from "./streams.ts";

export class Consumers {
  private readonly o: BrokerOptions;
  private readonly js: JetStream;
  private readonly jsm: JetStreamManager;
  /** See `birthOf`. Undefined: it is to be found out. */
  private born: Promise<string> | undefined;
  private making: Promise<void> | undefined;

  constructor(o: BrokerOptions, js: JetStream, jsm: JetStreamManager) {
    this.o = o;
    this.js = js;
    this.jsm = jsm;
  }

  /** Which servers they are: another answer means that they have lost all they had. */
  birth(): Promise<string> {
    this.born ??= this.findBirth();
    return this.born;
  }

  /** They may be others by now. */
  forgetBirth(): void {
    this.born = undefined;
  }

  /** Each machine may ask about its own consumer, which lives as long as the stream of jobs. */
  private async findBirth(): Promise<string> {
    try {
      const own = await this.get(targetConsumer(this.o.name));
      return birthOf(await own.info(true));
    } catch (error) {
      this.born = undefined;
      throw error;
    }
  }

  /** Makes what the servers have lost, if it may. */
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
    const { ackWaitMs } = this.o;
    const waitMs = Number((await pull.info(true)).config["ack_wait"]) / MS_NS;
    if (waitMs === ackWaitMs) return pull;
    throw new Error(
      `ack_wait_ms is ${ackWaitMs} here and ${waitMs} at the servers: set it to the same value at all machines, then run mailchute cluster init at one of them`,
    );
  }

  private async makeMissing(consumer: Consumer): Promise<void> {
    const { replicas, ackWaitMs, consumers } = this.o;
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

  /** Makes all that is needed, and changes what is otherwise. */
  makeAll(): Promise<Made[]> {
    const { name, replicas, ackWaitMs, consumers } = this.o;
    const own = [targetConsumer(name), homeConsumer(name), machineConsumer(name)];
    const all = new Map([...own, ...consumers].map((one) => [`${one.stream} ${one.name}`, one]));
    return makeAll(this.jsm, replicas, ackWaitMs, [...all.values()]);
  }
}
