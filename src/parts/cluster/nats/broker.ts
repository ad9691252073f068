/** The broker of the protocol with NATS JetStream. It makes its streams again when the servers have lost them. */
import { dispatchId } from "../protocol/dispatch.ts";
import { decodeLogPart, decodeReport, encodeMessage } from "../protocol/message-codec.ts";
import type {
  Beat,
  Drain,
  Job,
  LogAsk,
  LogPart,
  MachineReport,
  Result,
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

/** The code of the server's answer when the subject of a publish has a message already. */
const SUBJECT_IS_FULL = 10077;
/** Without this option the client would first ask about the whole account, for which a machine may have no right. */
const CALMLY = { checkAPI: false } as const;
/** A renewal may take this part of `ack_wait`. Two in a row then fail early enough to stop the run, see `Machine.renew`. */
const RENEWAL_PART = 0.25;
/** Another machine with the same name answers within this time (ms). */
const OTHER_ANSWER_MS = 300;
/** A job that arrived after a long wait is renewed within this time (ms), see `Machine.onJob`. */
const RENEWAL_MS_MAX = 1000;
/** The words that restart the time of a delivery at the server, and that tell it that a message is done. */
const IN_PROGRESS = "+WPI";
const DONE = "+ACK";

export class NatsBroker implements OriginBroker, MachineBroker {
  private readonly options: BrokerOptions;
  private readonly nc: Connection;
  private readonly js: JetStream;
  private readonly jsm: JetStreamManager;
  private readonly consumers: Consumers;
  private readonly intake: Intake;
  private isClosing = false;
  private isOn = true;

  private constructor(o: BrokerOptions, nc: Connection, js: JetStream, jsm: JetStreamManager) {
    this.options = o;
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

  /** Whether the servers can be reached, as far as this process knows. */
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
    return (
      (await this.subjectsOf(RESULT, resultSubject(this.options.tree, "*", "*", id))).length > 0
    );
  }

  /** The jobs of this tree that the servers have. */
  async jobs(): Promise<{ target: string; id: string }[]> {
    const subjects = await this.subjectsOf(WORK, `mc.work.*.${this.options.tree}.>`);
    return subjects.map((subject) => {
      const [target = "", id = ""] = readSubject(subject, 1);
      return { target, id };
    });
  }

  async dropJob(target: string, id: string): Promise<void> {
    await this.consumers.birth();
    // No purge of the subject: after a purge, servers of version 2.9 no longer deliver messages that wait before it in the stream.
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
    // The time limits of its requests are not enough, because it may have to ask first which servers these are.
    await within(Math.min(REQUEST_MS, RENEWAL_PART * this.options.ackWaitMs), renewed);
  }

  async finishJob(lease: string): Promise<void> {
    await this.tellOfLease(lease, DONE);
  }

  /** @returns false when the servers have lost everything since they gave this lease */
  private async tellOfLease(lease: string, word: string): Promise<boolean> {
    const at = lease.indexOf(" ");
    // A new stream numbers its messages from the start, so an old lease could name the job of another machine.
    if (lease.slice(0, at) !== (await this.consumers.birth())) return false;
    await this.nc.request(lease.slice(at + 1), word, { timeout: REQUEST_MS });
    return true;
  }

  async ask(): Promise<void> {
    this.nc.publish(askSubject(this.options.tree));
    await this.nc.flush();
  }

  /** Sends a heartbeat. The servers do not keep it, because the next one says the same. */
  beat(tree: string, beat: Beat): void {
    this.nc.publish(beatSubject(tree, this.options.name), encodeMessage(beat));
  }

  /** Sends a report about this machine. The servers do not keep it. */
  report(report: MachineReport): void {
    this.nc.publish(machineSubject(report.machine), encodeMessage(report));
  }

  /** Calls back for each report of a machine, including this one. */
  onReports(take: (bytes: Buffer, machine: string) => void): void {
    void this.listen(machineSubject("*"), ({ data, subject }) =>
      take(Buffer.from(data), readSubject(subject, 0)[0] ?? ""),
    );
  }

  /**
   * Asks a machine to take no more tasks, or to take them again. Its next report is the answer, because a machine may have no right
   * to write to the asking one.
   * @throws when no report confirms it in time
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

  /** Calls back for each request to this machine, such as to drain. */
  onControls(take: (bytes: Buffer) => void): void {
    void this.listen(controlSubject(this.options.name), ({ data }) => take(Buffer.from(data)));
  }

  /** Calls back when a tree asks for a part of a log, and sends the answer. It sends none for undefined. */
  onLogAsks(answer: (bytes: Buffer, tree: string) => Promise<LogPart | undefined>): void {
    const { name, onTrouble } = this.options;
    void this.listen(logAskSubject(name, "*.*"), ({ data, subject }) => {
      const tree = readSubject(subject, 1)[1] ?? "";
      answer(Buffer.from(data), tree)
        .then((part) => {
          if (part !== undefined) this.nc.publish(logSubject(tree, name), encodeMessage(part));
        })
        .catch(onTrouble);
    });
  }

  /**
   * Asks a machine for a part of a log. If two machines have its name, both answer, and only one of them may have the log.
   * @throws when it does not answer
   */
  async askLog(machine: string, ask: LogAsk): Promise<LogPart> {
    const parts = this.nc.subscribe(logSubject(this.options.tree, machine));
    const timer = setTimeout(() => parts.unsubscribe(), REQUEST_MS);
    let none: LogPart | undefined;
    try {
      this.nc.publish(logAskSubject(machine, this.options.tree), encodeMessage(ask));
      for await (const { data, subject } of parts) {
        // See `listen`.
        if (subject !== logSubject(this.options.tree, machine)) continue;
        const part = decodeLogPart(Buffer.from(data));
        if (part.request !== ask.request) continue;
        if (part.is_found) return part;
        none = part;
        setTimeout(() => parts.unsubscribe(), OTHER_ANSWER_MS);
      }
    } finally {
      clearTimeout(timer);
      parts.unsubscribe();
    }
    if (none !== undefined) return none;
    throw new Error(`nothing came from it within ${REQUEST_MS / 1000} s`);
  }

  /** Calls back for each heartbeat about this tree. */
  onBeats(take: (bytes: Buffer, machine: string) => void): void {
    void this.listen(beatSubject(this.options.tree, "*"), ({ data, subject }) =>
      take(Buffer.from(data), readSubject(subject, 2)[2] ?? ""),
    );
  }

  /** Calls back when a tree asks what this machine has of it. */
  onAsks(take: (tree: string) => void): void {
    void this.listen(askSubject("*.*"), ({ subject }) => take(readSubject(subject, 0)[0] ?? ""));
  }

  /** Takes results for the tree of this machine until it is closed. */
  results(take: (received: Received) => void): Promise<void> {
    return this.intake.consume(homeConsumer(this.options.name), 4, () => 256, take);
  }

  /** Takes messages of origins that dispatches are over, until it is closed. */
  overs(take: (received: Received) => void): Promise<void> {
    return this.intake.consume(machineConsumer(this.options.name), 1, () => 256, take);
  }

  /** Takes jobs for one target until it is closed. @param room how many more may come now */
  jobsFor(target: string, room: () => number, take: (received: Received) => void): Promise<void> {
    // With a shorter `ack_wait` every new job would count as one that another machine may have.
    const isCounted = FETCH_MS + RENEWAL_MS_MAX <= this.options.ackWaitMs;
    const taker = (received: Received): void =>
      take(isCounted ? received : { ...received, sinceMs: performance.now() });
    return this.intake.consume(targetConsumer(target), 1, room, taker);
  }

  /** Called when there may be room for jobs again. */
  takeMore(): void {
    this.intake.takeMore();
  }

  /** A text that identifies these servers. If it changes, they have lost everything. */
  birth(): Promise<string> {
    return this.consumers.birth();
  }

  /** Makes all streams and consumers that are needed, and corrects their settings. */
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
    // After a reconnect no lease may be used until it is known whether these servers gave it.
    for await (const { type } of this.nc.status()) {
      if (type !== "disconnect" && type !== "reconnect") continue;
      this.consumers.forgetBirth();
      this.isOn = type === "reconnect";
      // The client would repeat open requests itself, for longer than we count: see `Received.sinceMs`.
      if (this.isOn) this.intake.askAnew();
    }
  }

  private async listen(subject: string, take: (message: Msg) => void): Promise<void> {
    const kind = subject.slice(0, subject.indexOf(".", 3) + 1);
    try {
      // A machine can have messages of a stream sent to any subject. The message's own subject tells what it is.
      for await (const message of this.nc.subscribe(subject))
        if (message.subject.startsWith(kind)) take(message);
    } catch (error) {
      if (!this.isClosing) this.options.onTrouble(explain(error, `listen to ${subject}`));
    }
  }
}

/** @throws when the work takes longer than this (ms); its later result is ignored */
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
