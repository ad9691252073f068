/** NATS JetStream as the broker of the protocol. It makes its streams again when the servers have lost them. */
import { dispatchId } from "../protocol/dispatch.ts";
import {
  type Beat,
  type Drain,
  encodeMessage,
  type Job,
  type MachineReport,
  type Result,
} from "../protocol/messages.ts";
import type { Delivery, MachineBroker, OriginBroker } from "../protocol/ports.ts";
import type { Connection, JetStream, JetStreamManager, Msg, Nats, StreamMsg } from "./packages.ts";
import {
  askSubject,
  beatSubject,
  consumerConfig,
  controlSubject,
  machineSubject,
  OVER,
  overSubject,
  RESULT,
  readSubject,
  resultSubject,
  streamConfigs,
  WORK,
  workSubject,
} from "./streams.ts";

/** The server's answer to a publish whose subject has a message already. */
const SUBJECT_IS_FULL = 10077;
/** How long one request may take (ms). */
const REQUEST_MS = 5000;
/** How long one request for messages waits at the server (ms), and the pause after one that failed. */
const FETCH_MS = 5000;
const AGAIN_MS = 250;
const LATER_MS = 1000;
/** Asks the server to start the time of a delivery anew. */
const IN_PROGRESS = "+WPI";

export interface BrokerOptions {
  servers: readonly string[];
  /** The name of this machine. */
  name: string;
  tree: string;
  replicas: number;
  ackWaitMs: number;
  /** The contents of a credentials file. */
  creds?: Uint8Array;
  tls?: Record<string, unknown>;
  /** Called for each request for messages that has failed. It is repeated. */
  onTrouble: (error: unknown) => void;
}

/** A message of a stream, with the name under which it came. */
export interface Received {
  /** The tokens of its subject; the last one is the id of its dispatch. */
  names: readonly string[];
  bytes: Buffer;
  /** See `MachineBroker.renew`. */
  lease: string;
  delivery: Delivery;
}

export class NatsBroker implements OriginBroker, MachineBroker {
  private readonly o: BrokerOptions;
  private readonly nc: Connection;
  private readonly js: JetStream;
  private readonly jsm: JetStreamManager;
  /** When the stream of jobs was made: another time means that the servers have lost all. Undefined: it is to be found out. */
  private born: Promise<string> | undefined;
  private isClosing = false;
  private isOn = true;

  private constructor(o: BrokerOptions, nc: Connection, js: JetStream, jsm: JetStreamManager) {
    this.o = o;
    this.nc = nc;
    this.js = js;
    this.jsm = jsm;
    void this.watchConnection();
  }

  /** @throws an error of the client when no server answers */
  static async connect(nats: Nats, o: BrokerOptions): Promise<NatsBroker> {
    const nc = await nats.connect({
      servers: [...o.servers],
      name: `mailchute ${o.name}`,
      maxReconnectAttempts: -1,
      reconnectTimeWait: AGAIN_MS,
      pingInterval: Math.max(1000, Math.floor(o.ackWaitMs / 6)),
      ...(o.creds === undefined ? {} : { authenticator: nats.credsAuthenticator(o.creds) }),
      ...(o.tls === undefined ? {} : { tls: o.tls }),
    });
    try {
      return new NatsBroker(o, nc, nats.jetstream(nc), await nats.jetstreamManager(nc));
    } catch (error) {
      await nc.close();
      throw error;
    }
  }

  async close(): Promise<void> {
    this.isClosing = true;
    await this.nc.close();
  }

  /** Whether the servers can be reached, as far as is known. */
  get isConnected(): boolean {
    return this.isOn;
  }

  async publishJob(job: Job): Promise<void> {
    await this.birth();
    const subject = workSubject(job.target, dispatchId(job.dispatch));
    try {
      await this.js.publish(subject, encodeMessage(job), { timeout: REQUEST_MS });
    } catch (error) {
      if (codeOf(error) !== SUBJECT_IS_FULL) throw error;
    }
  }

  async hasJob(target: string, id: string): Promise<boolean> {
    return (await this.subjectsOf(WORK, workSubject(target, id))).length > 0;
  }

  async hasResult(id: string): Promise<boolean> {
    return (await this.subjectsOf(RESULT, resultSubject(this.o.tree, "*", id))).length > 0;
  }

  /** The jobs of this tree that the servers have. */
  async jobs(): Promise<{ target: string; id: string }[]> {
    const subjects = await this.subjectsOf(WORK, `mc.work.*.${this.o.tree}.>`);
    return subjects.map((subject) => {
      const [target = "", id = ""] = readSubject(subject, 1);
      return { target, id };
    });
  }

  async dropJob(target: string, id: string): Promise<void> {
    await this.birth();
    // Not by a purge of its subject: after one, servers of version 2.9 no longer deliver what waits before it in the stream.
    const wanted = { last_by_subj: workSubject(target, id) };
    const job = await this.jsm.streams.getMessage(WORK, wanted);
    if (job === null) return;
    try {
      await this.jsm.streams.deleteMessage(WORK, job.seq, false);
    } catch (error) {
      // Another machine, or the origin, has dropped it in between.
      if ((await this.jsm.streams.getMessage(WORK, wanted)) !== null) throw error;
    }
  }

  async publishResult(result: Result): Promise<void> {
    const { dispatch, machine } = result;
    const subject = resultSubject(dispatch.tree, machine, dispatchId(dispatch));
    await this.publish(subject, encodeMessage(result));
  }

  async publishOver(machine: string, id: string): Promise<void> {
    await this.publish(overSubject(machine, id), Buffer.alloc(0));
  }

  async renew(lease: string): Promise<void> {
    const at = lease.indexOf(" ");
    // The numbers of messages begin anew with the stream: an old one would renew the job of another machine.
    if (lease.slice(0, at) !== (await this.birth())) await this.nc.rtt();
    else await this.nc.request(lease.slice(at + 1), IN_PROGRESS, { timeout: REQUEST_MS });
  }

  async ask(): Promise<void> {
    this.nc.publish(askSubject(this.o.tree));
    await this.nc.flush();
  }

  /** Not kept by the servers: the next one says the same. */
  beat(tree: string, beat: Beat): void {
    this.nc.publish(beatSubject(tree), encodeMessage(beat));
  }

  /** Not kept by the servers. */
  report(report: MachineReport): void {
    this.nc.publish(machineSubject(report.machine), encodeMessage(report));
  }

  /** Calls back when a machine, this one too, says how it is. */
  onReports(take: (bytes: Buffer, machine: string) => void): void {
    void this.listen(machineSubject("*"), ({ data, subject }) =>
      take(Buffer.from(data), readSubject(subject, 0)[0] ?? ""),
    );
  }

  /** Asks a machine to take no more tasks, or to take them again. @returns its answer. @throws when it does not answer */
  async drain(machine: string, drain: Drain): Promise<Buffer> {
    const bytes = encodeMessage(drain);
    const { data } = await this.nc.request(controlSubject(machine), bytes, { timeout: REQUEST_MS });
    return Buffer.from(data);
  }

  /** Calls back for what this machine is asked to do, and sends the answer. */
  onControls(answer: (bytes: Buffer) => Drain | undefined): void {
    void this.listen(controlSubject(this.o.name), ({ data, reply }) => {
      const said = answer(Buffer.from(data));
      if (said !== undefined && reply !== undefined) this.nc.publish(reply, encodeMessage(said));
    });
  }

  /** Calls back for each heartbeat about this tree. */
  onBeats(take: (bytes: Buffer) => void): void {
    void this.listen(beatSubject(this.o.tree), ({ data }) => take(Buffer.from(data)));
  }

  /** Calls back when a tree asks what this machine has of it. */
  onAsks(take: (tree: string) => void): void {
    void this.listen(askSubject("*"), ({ subject }) => take(readSubject(subject, 0)[0] ?? ""));
  }

  /** Takes results for this tree until it is closed. */
  results(take: (received: Received) => void): Promise<void> {
    const filter = `mc.result.${this.o.tree}.>`;
    return this.consume(RESULT, `tree_${this.o.tree}`, filter, 2, () => 256, take);
  }

  /** Takes what origins say is over, until it is closed. */
  overs(take: (received: Received) => void): Promise<void> {
    const { name } = this.o;
    return this.consume(OVER, `machine_${name}`, `mc.over.${name}.>`, 1, () => 256, take);
  }

  /** Takes jobs for one target until it is closed. @param room how many more may come now */
  jobsFor(target: string, room: () => number, take: (received: Received) => void): Promise<void> {
    return this.consume(WORK, `target_${target}`, `mc.work.${target}.>`, 1, room, take);
  }

  private async consume(
    stream: string,
    consumer: string,
    filter: string,
    tokens: number,
    room: () => number,
    take: (received: Received) => void,
  ): Promise<void> {
    while (!this.isClosing) {
      try {
        const max = room();
        const born = await this.birth();
        if (max <= 0) {
          await pause(AGAIN_MS);
          continue;
        }
        await this.jsm.consumers.add(stream, consumerConfig(consumer, filter, this.o.ackWaitMs));
        const pull = await this.js.consumers.get(stream, consumer);
        const messages = await pull.fetch({ max_messages: max, expires: FETCH_MS });
        for await (const message of messages) take(received(message, tokens, born));
      } catch (error) {
        // The servers are away, or have lost the stream: it is made again.
        this.born = undefined;
        if (!this.isClosing) this.o.onTrouble(error);
        await pause(AGAIN_MS);
      }
    }
  }

  private async publish(subject: string, bytes: Buffer): Promise<void> {
    await this.birth();
    await this.js.publish(subject, bytes, { timeout: REQUEST_MS });
  }

  private async subjectsOf(stream: string, filter: string): Promise<string[]> {
    await this.birth();
    const { state } = await this.jsm.streams.info(stream, { subjects_filter: filter });
    return Object.keys(state.subjects ?? {});
  }

  /** Which servers they are: another answer means that they have lost all they had. */
  birth(): Promise<string> {
    this.born ??= this.makeStreams();
    return this.born;
  }

  /** @returns when the stream of jobs was made */
  private async makeStreams(): Promise<string> {
    try {
      const made: string[] = [];
      for (const config of streamConfigs(this.o.replicas))
        made.push((await this.jsm.streams.add(config)).created);
      return made[0] ?? "";
    } catch (error) {
      this.born = undefined;
      throw error;
    }
  }

  private async watchConnection(): Promise<void> {
    // No lease may be used before it is known whether these servers gave it.
    for await (const { type } of this.nc.status()) {
      if (type !== "disconnect" && type !== "reconnect") continue;
      this.born = undefined;
      this.isOn = type === "reconnect";
    }
  }

  private async listen(subject: string, take: (message: Msg) => void): Promise<void> {
    for await (const message of this.nc.subscribe(subject)) take(message);
  }
}

function received(message: StreamMsg, tokens: number, born: string): Received {
  return {
    names: readSubject(message.subject, tokens),
    bytes: Buffer.from(message.data),
    lease: `${born} ${message.reply}`,
    delivery: {
      done: async () => {
        await message.ackAck({ timeout: REQUEST_MS });
      },
      later: async () => message.nak(LATER_MS),
    },
  };
}

function codeOf(error: unknown): unknown {
  return (error as { code?: unknown }).code;
}

async function pause(ms: number): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, ms).unref());
}
