/** NATS JetStream as the broker of the protocol. It makes its streams again when the servers have lost them. */
import { dispatchId } from "../protocol/dispatch.ts";
import {
  type Beat,
  type Drain,
  decodeLogPart,
  decodeReport,
  encodeMessage,
  type Job,
  type LogAsk,
  type LogPart,
  type MachineReport,
  type Result,
} from "../protocol/messages.ts";
import type { Delivery, MachineBroker, OriginBroker } from "../protocol/ports.ts";
import { codeOf, isMissing, type Made, makeAll, makeMissing } from "./make.ts";
import type {
  Connection,
  JetStream,
  JetStreamManager,
  Msg,
  Nats,
  PullConsumer,
  StreamMsg,
} from "./packages.ts";
import {
  askSubject,
  beatSubject,
  type Consumer,
  controlSubject,
  homeConsumer,
  inboxOf,
  logAskSubject,
  logSubject,
  MS_NS,
  machineConsumer,
  machineSubject,
  overSubject,
  RESULT,
  readSubject,
  resultSubject,
  targetConsumer,
  WORK,
  workSubject,
} from "./streams.ts";

/** The server's answer to a publish whose subject has a message already. */
const SUBJECT_IS_FULL = 10077;
/** The first question would be about the whole account. */
const CALMLY = { checkAPI: false } as const;
/** How long one request may take, and how long it may take to connect to a server (ms). */
const REQUEST_MS = 5000;
const CONNECT_MS = 10_000;
/** A renewal has this part of `ack_wait`: two that begin one after the other fail in time for the run to be stopped, see `Machine.renew`. */
const RENEWAL_PART = 0.25;
/** How long one request for messages waits at the server (ms), and the pause after one that failed. */
const FETCH_MS = 5000;
const AGAIN_MS = 250;
const LATER_MS = 1000;
/** Asks the server to start the time of a delivery anew, and tells it that a message is done. */
const IN_PROGRESS = "+WPI";
const DONE = "+ACK";

export interface BrokerOptions {
  servers: readonly string[];
  /** The name of this machine. */
  name: string;
  tree: string;
  replicas: number;
  ackWaitMs: number;
  /** What other machines need of the servers: it is made beside what this one needs. */
  consumers: readonly Consumer[];
  /** The contents of a credentials file, or the seed of an nkey. */
  credentials?: Uint8Array;
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
  private making: Promise<void> | undefined;
  /** Those that wait for room. */
  private readonly waiting = new Set<() => void>();
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
    const options = {
      servers: [...o.servers],
      name: `mailchute ${o.name}`,
      timeout: CONNECT_MS,
      maxReconnectAttempts: -1,
      reconnectTimeWait: AGAIN_MS,
      pingInterval: Math.max(1000, Math.floor(o.ackWaitMs / 6)),
      // What servers answer is for this machine alone: see `permissionsOf`.
      inboxPrefix: inboxOf(o.name),
      // To note for each request where it was made would cost more than the request itself.
      noAsyncTraces: true,
      ...(o.credentials === undefined ? {} : { authenticator: authenticator(nats, o.credentials) }),
      ...(o.tls === undefined ? {} : { tls: o.tls }),
    };
    const nc = await nats.connect(options).catch((error: unknown) => {
      throw explainSilence(error, o);
    });
    try {
      return new NatsBroker(o, nc, nats.jetstream(nc), await nats.jetstreamManager(nc, CALMLY));
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
    return (await this.subjectsOf(RESULT, resultSubject(this.o.tree, "*", "*", id))).length > 0;
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
    const { dispatch, target, machine } = result;
    const subject = resultSubject(dispatch.tree, target, machine, dispatchId(dispatch));
    await this.publish(subject, encodeMessage(result));
  }

  async publishOver(machine: string, id: string): Promise<void> {
    await this.publish(overSubject(machine, id), Buffer.alloc(0));
  }

  async renew(lease: string): Promise<void> {
    const renewed = this.tellOfLease(lease, IN_PROGRESS).then(async (isThere) => {
      if (!isThere) await this.nc.rtt();
    });
    // Not by the time of its requests alone: it may have to ask first which servers they are.
    await within(Math.min(REQUEST_MS, RENEWAL_PART * this.o.ackWaitMs), renewed);
  }

  async finishJob(lease: string): Promise<void> {
    await this.tellOfLease(lease, DONE);
  }

  /** @returns false for a lease of servers that have lost all they had since then */
  private async tellOfLease(lease: string, word: string): Promise<boolean> {
    const at = lease.indexOf(" ");
    // The numbers of messages begin anew with the stream: an old one would mean the job of another machine.
    if (lease.slice(0, at) !== (await this.birth())) return false;
    await this.nc.request(lease.slice(at + 1), word, { timeout: REQUEST_MS });
    return true;
  }

  async ask(): Promise<void> {
    this.nc.publish(askSubject(this.o.tree));
    await this.nc.flush();
  }

  /** Not kept by the servers: the next one says the same. */
  beat(tree: string, beat: Beat): void {
    this.nc.publish(beatSubject(tree, this.o.name), encodeMessage(beat));
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

  /**
   * Asks a machine to take no more tasks, or to take them again. What it reports of itself is the answer: for one to the sender alone it
   * would have to be allowed to write to him.
   * @throws when it does not say that it does
   */
  async drain(machine: string, drain: Drain): Promise<void> {
    const reports = this.nc.subscribe(machineSubject(machine));
    const timer = setTimeout(() => reports.unsubscribe(), REQUEST_MS);
    try {
      this.nc.publish(controlSubject(machine), encodeMessage(drain));
      for await (const { data, subject } of reports) {
        // See `listen`.
        if (subject !== machineSubject(machine)) continue;
        if (decodeReport(Buffer.from(data), machine).is_draining === drain.is_draining) return;
      }
    } finally {
      clearTimeout(timer);
      reports.unsubscribe();
    }
    throw new Error(`nothing came from it within ${REQUEST_MS / 1000} s`);
  }

  /** Calls back for what this machine is asked to do. */
  onControls(take: (bytes: Buffer) => void): void {
    void this.listen(controlSubject(this.o.name), ({ data }) => take(Buffer.from(data)));
  }

  /** Calls back when a tree asks for a part of a log, and sends the answer; undefined: there is none. */
  onLogAsks(answer: (bytes: Buffer, tree: string) => Promise<LogPart | undefined>): void {
    const { name, onTrouble } = this.o;
    void this.listen(logAskSubject(name, "*.*"), ({ data, subject }) => {
      const tree = readSubject(subject, 1)[1] ?? "";
      answer(Buffer.from(data), tree)
        .then((part) => {
          if (part !== undefined) this.nc.publish(logSubject(tree, name), encodeMessage(part));
        })
        .catch(onTrouble);
    });
  }

  /** Asks a machine for a part of a log. @throws when it does not answer */
  async askLog(machine: string, ask: LogAsk): Promise<LogPart> {
    const parts = this.nc.subscribe(logSubject(this.o.tree, machine));
    const timer = setTimeout(() => parts.unsubscribe(), REQUEST_MS);
    try {
      this.nc.publish(logAskSubject(machine, this.o.tree), encodeMessage(ask));
      for await (const { data, subject } of parts) {
        // See `listen`.
        if (subject !== logSubject(this.o.tree, machine)) continue;
        const part = decodeLogPart(Buffer.from(data));
        if (part.request === ask.request) return part;
      }
    } finally {
      clearTimeout(timer);
      parts.unsubscribe();
    }
    throw new Error(`nothing came from it within ${REQUEST_MS / 1000} s`);
  }

  /** Calls back for each heartbeat about this tree. */
  onBeats(take: (bytes: Buffer, machine: string) => void): void {
    void this.listen(beatSubject(this.o.tree, "*"), ({ data, subject }) =>
      take(Buffer.from(data), readSubject(subject, 2)[2] ?? ""),
    );
  }

  /** Calls back when a tree asks what this machine has of it. */
  onAsks(take: (tree: string) => void): void {
    void this.listen(askSubject("*.*"), ({ subject }) => take(readSubject(subject, 0)[0] ?? ""));
  }

  /** Takes results for the tree of this machine until it is closed. */
  results(take: (received: Received) => void): Promise<void> {
    return this.consume(homeConsumer(this.o.name), 4, () => 256, take);
  }

  /** Takes what origins say is over, until it is closed. */
  overs(take: (received: Received) => void): Promise<void> {
    return this.consume(machineConsumer(this.o.name), 1, () => 256, take);
  }

  /** Takes jobs for one target until it is closed. @param room how many more may come now */
  jobsFor(target: string, room: () => number, take: (received: Received) => void): Promise<void> {
    return this.consume(targetConsumer(target), 1, room, take);
  }

  /** There may be room for jobs now. */
  takeMore(): void {
    for (const go of this.waiting) go();
    this.waiting.clear();
  }

  private async roomOrPause(): Promise<void> {
    let go = (): void => {};
    const told = new Promise<void>((resolve) => {
      go = resolve;
    });
    this.waiting.add(go);
    await Promise.race([told, pause(AGAIN_MS)]);
    this.waiting.delete(go);
  }

  private async consume(
    consumer: Consumer,
    tokens: number,
    room: () => number,
    take: (received: Received) => void,
  ): Promise<void> {
    let pull: PullConsumer | undefined;
    let pullBorn = "";
    while (!this.isClosing) {
      try {
        const max = room();
        const born = await this.birth();
        if (max <= 0) {
          await this.roomOrPause();
          continue;
        }
        if (pull === undefined || pullBorn !== born) {
          pull = await this.get(consumer);
          pullBorn = born;
        }
        const messages = await pull.fetch({ max_messages: max, expires: FETCH_MS });
        let count = 0;
        for await (const message of messages) {
          count++;
          take(received(message, tokens, born));
        }
        // It may be silent because the servers have lost it.
        if (count === 0) pull = undefined;
      } catch (error) {
        // The servers are away, or have lost the stream: it is made again.
        pull = undefined;
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
    this.born ??= this.findBirth();
    return this.born;
  }

  /** Each machine may ask about its own consumer, which lives as long as the stream of jobs. */
  private async findBirth(): Promise<string> {
    try {
      const own = await this.get(targetConsumer(this.o.name));
      return (await own.info(true)).created;
    } catch (error) {
      this.born = undefined;
      throw error;
    }
  }

  /** Makes what the servers have lost, if it may. */
  private async get(consumer: Consumer): Promise<PullConsumer> {
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

  private async watchConnection(): Promise<void> {
    // No lease may be used before it is known whether these servers gave it.
    for await (const { type } of this.nc.status()) {
      if (type !== "disconnect" && type !== "reconnect") continue;
      this.born = undefined;
      this.isOn = type === "reconnect";
    }
  }

  private async listen(subject: string, take: (message: Msg) => void): Promise<void> {
    const kind = subject.slice(0, subject.indexOf(".", 3) + 1);
    try {
      // A message of a stream may be sent anywhere; its subject tells what it is.
      for await (const message of this.nc.subscribe(subject))
        if (message.subject.startsWith(kind)) take(message);
    } catch (error) {
      if (!this.isClosing) this.o.onTrouble(explain(error, `listen to ${subject}`));
    }
  }
}

function authenticator(nats: Nats, credentials: Uint8Array): unknown {
  const seed = /^\s*(SU[A-Z2-7]+)\s*$/.exec(Buffer.from(credentials).toString("latin1"))?.[1];
  if (seed === undefined) return nats.credsAuthenticator(credentials);
  return nats.nkeyAuthenticator(Buffer.from(seed, "latin1"));
}

/** @param what this machine may not do, when that is what the error says: see `permissionsOf` */
function explain(error: unknown, what: string): unknown {
  if (!(error instanceof Error) || !/permissions violation/i.test(error.message)) return error;
  return new Error(
    `this machine may not ${what} (${error.message}): mailchute cluster init, in the tree that lists the machines, allows and makes what each needs`,
    { cause: error },
  );
}

/** A server that does not accept the certificate of a client ends the connection without a word, and the client waits for one. */
function explainSilence(error: unknown, { tls }: BrokerOptions): unknown {
  if (!(error instanceof Error) || error.name !== "TimeoutError") return error;
  const silence = `no server has answered within ${CONNECT_MS / 1000} s`;
  const why = ": one that asks for certificates says in its log alone that it has refused one";
  const check = "; check cert and key of cluster: tls";
  return new Error(tls === undefined ? silence : `${silence}${why}${check}`, { cause: error });
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

/** @throws when it takes longer than that (ms); what comes of it later is ignored */
async function within(ms: number, work: Promise<void>): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`no answer within ${ms / 1000} s`)), ms);
  });
  try {
    await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}

async function pause(ms: number): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, ms).unref());
}
