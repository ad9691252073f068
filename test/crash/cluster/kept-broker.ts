/**
 * Servers as the bridges see them, kept in one file, so that they outlive the process: jobs, results and receipts of a subject each,
 * delivered again after `ack_wait` until they are done. Time is that of the walk.
 */
import fs from "node:fs";
import type { Bridge } from "../../../src/parts/cluster/bridge.ts";
import type { Received } from "../../../src/parts/cluster/nats/intake.ts";
import { dispatchId } from "../../../src/parts/cluster/protocol/dispatch.ts";
import { encodeMessage } from "../../../src/parts/cluster/protocol/message-codec.ts";
import type { Beat, Job, Result } from "../../../src/parts/cluster/protocol/messages.ts";

export type BridgeBroker = ConstructorParameters<typeof Bridge>[0]["broker"];

const LATER_MS = 1000;
type Kind = "job" | "result" | "over";

interface Message {
  kind: Kind;
  names: string[];
  text: string;
  seq: number;
  /** Not delivered before (ms). */
  notBeforeMs: number;
}

interface Kept {
  birth: number;
  seq: number;
  nowMs: number;
  messages: Record<string, Message>;
}

interface Consumer {
  kind: Kind;
  of: string;
  machine: string;
  room: () => number;
  take: (one: Received) => void;
}

export class KeptBroker {
  private readonly path: string;
  private readonly quietPath: string;
  private readonly ackWaitMs: number;
  private readonly kept: Kept;
  private readonly consumers: Consumer[] = [];
  private readonly hears: { tree: string; take: (bytes: Buffer, machine: string) => void }[] = [];
  private readonly answers: { machine: string; take: (tree: string) => void }[] = [];
  private readonly cut = new Set<string>();

  /**
   * @param path where changes are written that bridges make: each counts as a call
   * @param quietPath another path of that file: what it writes there does not count
   */
  constructor(path: string, quietPath: string, ackWaitMs: number) {
    this.path = path;
    this.quietPath = quietPath;
    this.ackWaitMs = ackWaitMs;
    this.kept = fs.existsSync(quietPath)
      ? (JSON.parse(fs.readFileSync(quietPath, "utf8")) as Kept)
      : { birth: 1, seq: 0, nowMs: 0, messages: {} };
  }

  get nowMs(): number {
    return this.kept.nowMs;
  }

  pass(ms: number): void {
    this.kept.nowMs += ms;
    this.save(this.quietPath);
  }

  isEmpty(): boolean {
    return Object.keys(this.kept.messages).length === 0;
  }

  has(kind: Kind): boolean {
    return Object.values(this.kept.messages).some((one) => one.kind === kind);
  }

  keys(): string[] {
    return Object.keys(this.kept.messages);
  }

  /** The servers have lost their disks. */
  wipe(): void {
    this.kept.birth++;
    this.kept.messages = {};
    this.save(this.quietPath);
  }

  setCut(machine: string, isCut: boolean): void {
    if (isCut) this.cut.add(machine);
    else this.cut.delete(machine);
  }

  /** The process of this machine is away: nothing is delivered to it. */
  remove(machine: string): void {
    for (let at = this.consumers.length - 1; at >= 0; at--)
      if (this.consumers[at]?.machine === machine) this.consumers.splice(at, 1);
    for (let at = this.answers.length - 1; at >= 0; at--)
      if (this.answers[at]?.machine === machine) this.answers.splice(at, 1);
  }

  /** Delivers what is due. @returns whether there was something */
  deliver(): boolean {
    let isAny = false;
    for (const { kind, of, machine, room, take } of this.consumers) {
      if (this.cut.has(machine)) continue;
      let left = room();
      for (const [key, one] of Object.entries(this.kept.messages)) {
        if (left <= 0) break;
        if (one.kind !== kind || one.names[0] !== of || one.notBeforeMs > this.nowMs) continue;
        one.notBeforeMs = this.nowMs + this.ackWaitMs;
        left--;
        isAny = true;
        this.save(this.quietPath);
        take(this.received(key, one, machine));
      }
    }
    return isAny;
  }

  clientOf(machine: string, tree: string): BridgeBroker {
    const call = <T>(act: () => T): Promise<T> => this.call(machine, act);
    const put = (kind: Kind, names: string[], text: string, isKept = false): Promise<void> =>
      call(() => {
        const key = `${kind} ${names.join(" ")}`;
        if (isKept && this.kept.messages[key] !== undefined) return;
        const seq = ++this.kept.seq;
        this.kept.messages[key] = { kind, names, text, seq, notBeforeMs: 0 };
        this.save(this.path);
      });
    const listen = (kind: Kind, of: string, room: () => number, take: Consumer["take"]) => {
      this.consumers.push({ kind, of, machine, room, take });
      return Promise.resolve();
    };
    const find = (test: (one: Message) => boolean): Message[] =>
      Object.values(this.kept.messages).filter(test);
    return {
      publishJob: (job: Job) =>
        put("job", [job.target, dispatchId(job.dispatch)], String(encodeMessage(job)), true),
      publishResult: (result: Result) =>
        put(
          "result",
          [result.dispatch.tree, result.target, result.machine, dispatchId(result.dispatch)],
          String(encodeMessage(result)),
        ),
      publishOver: (to: string, id: string) => put("over", [to, id], ""),
      hasJob: (target, id) => call(() => this.kept.messages[`job ${target} ${id}`] !== undefined),
      hasResult: (id) =>
        call(() => find(({ kind, names }) => kind === "result" && names[3] === id).length > 0),
      jobs: () =>
        call(() =>
          find(
            ({ kind, names }) => kind === "job" && names[1]?.startsWith(`${tree}.`) === true,
          ).map(({ names: [target = "", id = ""] }) => ({ target, id })),
        ),
      dropJob: (target, id) =>
        call(() => {
          const key = `job ${target} ${id}`;
          if (this.kept.messages[key] === undefined) return;
          delete this.kept.messages[key];
          this.save(this.path);
        }),
      finishJob: (lease) =>
        call(() => {
          const [key] = this.jobOf(lease);
          if (key === undefined) return;
          delete this.kept.messages[key];
          this.save(this.path);
        }),
      renew: (lease) =>
        call(() => {
          const [, job] = this.jobOf(lease);
          if (job !== undefined) job.notBeforeMs = this.nowMs + this.ackWaitMs;
          this.save(this.quietPath);
        }),
      onLogAsks: () => {},
      askLog: () => Promise.reject(new Error("no log is read here")),
      birth: () => call(() => String(this.kept.birth)),
      ask: () =>
        call(() => {
          for (const one of this.answers) if (!this.cut.has(one.machine)) one.take(tree);
        }),
      beat: (of: string, beat: Beat) => {
        if (this.cut.has(machine)) return;
        for (const one of this.hears) if (one.tree === of) one.take(encodeMessage(beat), machine);
      },
      // What machines say of themselves, and are told to do, has no part in how a task settles.
      isConnected: true,
      report: () => {},
      onReports: () => {},
      makeAll: () => Promise.resolve([]),
      drain: () => Promise.reject(new Error("no machine answers")),
      onControls: () => {},
      onBeats: (take) => void this.hears.push({ tree, take }),
      onAsks: (take) => void this.answers.push({ machine, take }),
      results: (take) => listen("result", tree, () => 256, take),
      overs: (take) => listen("over", machine, () => 256, take),
      // Its jobs wait for no timer.
      takeMore: () => {},
      jobsFor: (target, room, take) => listen("job", target, room, take),
      close: () => Promise.resolve(),
    };
  }

  private async call<T>(machine: string, act: () => T): Promise<T> {
    // Others come in between.
    await Promise.resolve();
    if (this.cut.has(machine)) throw new Error("no server answers");
    return act();
  }

  private jobOf(lease: string): [key: string, job: Message] | [] {
    const [birth, seq] = lease.split(" ").map(Number);
    if (birth !== this.kept.birth) return [];
    const jobs = Object.entries(this.kept.messages).filter(([, { kind }]) => kind === "job");
    return jobs.find(([, job]) => job.seq === seq) ?? [];
  }

  private received(key: string, { names, text, seq }: Message, machine: string): Received {
    const settle = (act: (one: Message) => void) =>
      this.call(machine, () => {
        const one = this.kept.messages[key];
        if (one?.seq === seq) act(one);
      });
    return {
      names,
      bytes: Buffer.from(text),
      lease: `${this.kept.birth} ${seq}`,
      turn: [this.kept.birth, seq, this.kept.nowMs]
        .map((n) => String(n).padStart(12, "0"))
        .join(" "),
      sinceMs: performance.now(),
      delivery: {
        done: () =>
          settle(() => {
            delete this.kept.messages[key];
            this.save(this.path);
          }),
        later: () =>
          settle((one) => {
            one.notBeforeMs = this.nowMs + LATER_MS;
          }),
      },
    };
  }

  private save(path: string): void {
    fs.writeFileSync(path, JSON.stringify(this.kept));
  }
}
