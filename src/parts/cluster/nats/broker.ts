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
import type { MachineBroker, OriginBroker } from "../protocol/ports.ts";
import { type BrokerOptions, connect, explain } from "./connect.ts";
import { Consumers } from "./consumers.ts";
import { FETCH_MS, Intake, type Received } from "./intake.ts";
import { codeOf, type Made } from "./make.ts";
import type { Connection, JetStream, JetStreamManager, Msg, Nats } from "./packages.ts";
import {
  askSubject,
  beatSubject,
  controlSubject,
  homeConsumer,
  logAskSubject,
  logSubject,
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
import { REQUEST_MS } from "./times.ts";

/** The server's answer to a publish whose subject has a message already. */
const SUBJECT_IS_FULL = 10077;
/** The first question would be about the whole account. */
const CALMLY = { checkAPI: false } as const;
/** A renewal has this part of `ack_wait`: two that begin one after the other fail in time for the run to be stopped, see `Machine.renew`. */
const RENEWAL_PART = 0.25;
/** One that has just come after a long wait is renewed within this time (ms), see `Machine.onJob`. */
const RENEWAL_MS_MAX = 1000;
/** Asks the server to start the time of a delivery anew, and tells it that a message is done. */
const IN_PROGRESS = "+WPI";
const DONE = "+ACK";

export class NatsBroker implements OriginBroker, MachineBroker {
  private readonly o: BrokerOptions;
  private readonly nc: Connection;
  private readonly js: JetStream;
  private readonly jsm: JetStreamManager;
  private readonly consumers: Consumers;
  private readonly intake: Intake;
  private isClosing = false;
  private isOn = true;

  private constructor(o: BrokerOptions, nc: Connection, js: JetStream, jsm: JetStreamManager) {
    this.o = o;
    this.nc = nc;
    this.js = js;
    this.jsm = jsm;
    this.consumers = new Consumers(o, js, jsm);
    this.intake = new Intake(this.consumers, o.onTrouble);
    void this.watchConnection();
  }

  /** @throws an error of the client when no server answers */
  static async connect(nats: Nats, o: BrokerOptions): Promise<NatsBroker> {
    const nc = await connect(nats, o);
    try {
      return new NatsBroker(o, nc, nats.jetstream(nc), await nats.jetstreamManager(nc, CALMLY));
    } catch (error) {
      await nc.close();
      throw error;
    }
  }

  async close(): Promise<void> {
    this.isClosing = true;
    this.intake.close();
    await this.nc.close();
  }

  /** Whether the servers can be reached, as far as is known. */
  get isConnected(): boolean {
    return this.isOn;
  }

  async publishJob(job: Job): Promise<void> {
    await this.consumers.birth();
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
    await this.consumers.birth();
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
    if (lease.slice(0, at) !== (await this.consumers.birth())) return false;
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
    return this.intake.consume(homeConsumer(this.o.name), 4, () => 256, take);
  }

  /** Takes what origins say is over, until it is closed. */
  overs(take: (received: Received) => void): Promise<void> {
    return this.intake.consume(machineConsumer(this.o.name), 1, () => 256, take);
  }

  /** Takes jobs for one target until it is closed. @param room how many more may come now */
  jobsFor(target: string, room: () => number, take: (received: Received) => void): Promise<void> {
    // With a shorter `ack_wait` a job that has just come would count as one that another machine may have.
    const isCounted = FETCH_MS + RENEWAL_MS_MAX <= this.o.ackWaitMs;
    const taker = (received: Received): void =>
      take(isCounted ? received : { ...received, sinceMs: performance.now() });
    return this.intake.consume(targetConsumer(target), 1, room, taker);
  }

  /** There may be room for jobs now. */
  takeMore(): void {
    this.intake.takeMore();
  }

  /** Which servers they are: another answer means that they have lost all they had. */
  birth(): Promise<string> {
    return this.consumers.birth();
  }

  /** Makes all that is needed, and changes what is otherwise. */
  makeAll(): Promise<Made[]> {
    return this.consumers.makeAll();
  }

  private async publish(subject: string, bytes: Buffer): Promise<void> {
    await this.consumers.birth();
    await this.js.publish(subject, bytes, { timeout: REQUEST_MS });
  }

  private async subjectsOf(stream: string, filter: string): Promise<string[]> {
    await this.consumers.birth();
    const { state } = await this.jsm.streams.info(stream, { subjects_filter: filter });
    return Object.keys(state.subjects ?? {});
  }

  private async watchConnection(): Promise<void> {
    // No lease may be used before it is known whether these servers gave it.
    for await (const { type } of this.nc.status()) {
      if (type !== "disconnect" && type !== "reconnect") continue;
      this.consumers.forgetBirth();
      this.isOn = type === "reconnect";
      // The client would make them again itself, for longer than we count: see `Received.sinceMs`.
      if (this.isOn) this.intake.askAnew();
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
