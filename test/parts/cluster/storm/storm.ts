/**
 * One tree that sends tasks, machines that run them, and real servers between them, while all of them are killed, stopped and cut off, and the
 * servers lose all they have; then calm, and the check whether each task has settled once.
 */
import fs from "node:fs";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { findVictims, signalTo, type Victim } from "../../../crash/chaos/victims.ts";
import { seededRandom } from "../../../support/seeded-random.ts";
import { type OnEnd, tempDir } from "../../../support/temp-dir.ts";
import { checkStorm, LATE_LOOK_MS, type Span, type StormCheck, type Struck } from "./check.ts";
import { type Fault, type FaultKind, faultsOf } from "./faults.ts";
import { Lateness } from "./late.ts";
import { LEASE_MS, Machine } from "./machine.ts";
import { Pace } from "./pace.ts";
import { Recovery } from "./recovery.ts";
import { Servers } from "./servers.ts";
import { readRuns, tracePath } from "./trace.ts";

export interface StormOptions {
  seed: number;
  tasks: number;
  /** Trees: the first one sends, the others work for it. */
  machines: number;
  servers: number;
  faults: number;
  /** Time between two faults (ms). */
  minMs: number;
  maxMs: number;
  /** The longest that something stands still, or is cut off (ms). */
  holdMs: number;
  ackWaitMs: number;
  /** It must be over within this time; the faults end before that even if there were fewer. */
  minutes: number;
  /** A name of `broken.ts`: bridges are broken so. */
  broken?: string;
  onEnd: OnEnd;
  onProgress?: (progress: string) => void;
}

export interface StormResult extends StormCheck {
  dir: string;
  tasks: number;
  faults: Map<FaultKind, number>;
  starts: number;
  /** How often a bridge or a server had to wait for a processor. */
  late: number;
  seconds: number;
}

const PAUSE_MS = 25;
/** How often it tells how far it is (ms): a long one less often. */
const TELL_MS = { short: 10_000, long: 60_000 };
const LONG_TASKS = 1000;
/** A fault without a victim is given up after this time (ms). */
const NO_VICTIM_MS = 2000;
/** How many tasks wait at most. */
const AHEAD_MAX = 200;
const RUN_MS_MAX = 300;
/** One task in so many runs for longer than `ack_wait`, so that it must be renewed; the first run of one in so many fails. */
const LONG_ONE_IN = 50;
const FAILS_ONE_IN = 8;
/** So many long runs, and so many first runs that fail, end before the first fault: then no fault explains what is wrong with them. */
const LONG_BEFORE = 8;
const FAILS_BEFORE = 8;
/** The next so many run long, too. The first fault cuts off a machine that has begun one of them, until that would have ended. */
const LONG_AT_CUT = 8;
/**
 * The next so many run long and may be run once only. The second fault kills a machine that has begun one of them. It comes back after this
 * part of `ack_wait`, while its replacement runs.
 */
const ONCE_AT_RETURN = 8;
const RETURN_AFTER = 1.4;
/** Later one task in so many may be run once only. */
const ONCE_ONE_IN = 6;
/** Names of results are listed again after so many times as long as that took. */
const LIST_REST = 10;
const HANDLER = fileURLToPath(new URL("handler.mjs", import.meta.url));

export async function runStorm(o: StormOptions): Promise<StormResult> {
  const dir = tempDir(o.onEnd);
  const servers = await Servers.start(dir, o.servers);
  o.onEnd(() => servers.end());
  const [origin, ...machines] = await Promise.all(
    Array.from({ length: o.machines }, (_, at) => newMachine(at, dir, servers, o)),
  );
  if (origin === undefined || machines.length === 0) throw new Error("too few machines");
  return new Storm(dir, servers, origin, machines, o).run();
}

function newMachine(at: number, dir: string, servers: Servers, o: StormOptions): Promise<Machine> {
  const name = at === 0 ? "origin" : `m${at}`;
  const trace = tracePath(dir, name);
  const { ackWaitMs, onEnd } = o;
  const env = o.broken === undefined ? {} : { MAILCHUTE_STORM_BREAK: o.broken };
  const common = { name, servers, ackWaitMs, onEnd, env };
  if (at === 0)
    return Machine.make({
      ...common,
      cluster: "slots: 1",
      config: `workers: 4
agents:
  - {name: far, kind: remote, where: any, as: coder}
  - {name: out, kind: remote, where: any, as: program}`,
    });
  const script = `note() { echo "$1 $MAILCHUTE_TASK_ID $(date +%s%3N) $$" >> "${trace}"; }; note start; sleep 0.1; note end`;
  return Machine.make({
    ...common,
    env: { ...env, MAILCHUTE_STORM_TRACE: trace },
    cluster: "slots: 16\n  accept: [coder, program]\n  serves: [any]",
    config: `workers: 8
processes: 2
agents:
  - {name: coder, kind: module, module: ${HANDLER}}
  - {name: program, kind: exec, program: sh, args: [-c, ${JSON.stringify(script)}]}`,
  });
}

class Storm {
  private readonly dir: string;
  private readonly servers: Servers;
  private readonly origin: Machine;
  private readonly machines: readonly Machine[];
  private readonly options: StormOptions;
  private readonly ids: string[];
  private readonly chance: ReturnType<typeof seededRandom>;
  private readonly counts = new Map<FaultKind, number>();
  /** What was struck, and how long it lasted: only that may make a run happen twice. */
  private readonly struck: Struck[] = [];
  /** What is to be undone, and when (ms). */
  private readonly undo: { atMs: number; act: () => void | Promise<void> }[] = [];
  private readonly problems: string[] = [];
  private readonly cutOff = new Set<Machine>();
  private readonly late: Span[] = [];
  private readonly lateness = new Lateness();
  private readonly recovery = new Recovery();
  private lateLookMs = 0;
  private dropped = 0;
  private hasWiped = false;
  private readonly pace: Pace;
  /** When the first fault is over; undefined before it (monotonic ms). */
  private firstCutToMs: number | undefined;
  /** When the second fault is over; undefined before it (monotonic ms). */
  private returnToMs: number | undefined;
  /** Tasks that may be run once only. */
  private readonly once = new Set<string>();
  private settledCount = 0;
  private listAtMs = 0;
  private tellAtMs = 0;

  constructor(
    dir: string,
    servers: Servers,
    origin: Machine,
    machines: readonly Machine[],
    o: StormOptions,
  ) {
    this.dir = dir;
    this.servers = servers;
    this.origin = origin;
    this.machines = machines;
    this.options = o;
    this.ids = Array.from({ length: o.tasks }, (_, n) => `t${String(n).padStart(6, "0")}`);
    this.chance = seededRandom(o.seed);
    this.pace = new Pace({ ...o, leaseMs: LEASE_MS }, performance.now());
  }

  async run(): Promise<StormResult> {
    const startMs = performance.now();
    this.options.onProgress?.(this.pace.limits);
    const failed = (await this.storm()) ?? (await this.calm());
    if (failed !== undefined) this.problems.push(`${failed}: ${this.whatIsLeft()}`);
    const all = [this.origin, ...this.machines];
    for (const { pool } of all) await pool.killAll();
    const check = checkStorm({
      dir: this.dir,
      origin: this.origin,
      machines: this.machines,
      ids: this.ids,
      once: this.once,
      struck: this.struck,
      late: this.late,
      ackWaitMs: this.options.ackWaitMs,
    });
    return {
      ...check,
      dir: this.dir,
      tasks: this.ids.length,
      faults: this.counts,
      starts: all.reduce((sum, { starts }) => sum + starts, 0),
      late: this.late.length,
      seconds: (performance.now() - startMs) / 1000,
      problems: [...this.problems, ...all.flatMap((one) => one.problems), ...check.problems],
    };
  }

  /** So many tasks settle before the first fault. */
  private get beforeFaults(): number {
    return Math.min(LONG_BEFORE + FAILS_BEFORE, this.options.tasks);
  }

  /** Longer than `ack_wait`, so that it must be renewed (ms). */
  private get longMs(): number {
    return 2 * this.options.ackWaitMs;
  }

  private get faultCount(): number {
    return [...this.counts.values()].reduce((sum, count) => sum + count, 0);
  }

  /** How many tasks have settled, as far as is known. */
  private settled(): number {
    const fromMs = performance.now();
    if (fromMs < this.listAtMs) return this.settledCount;
    this.settledCount = this.origin.pool.settledCount();
    const toMs = performance.now();
    this.listAtMs = toMs + LIST_REST * (toMs - fromMs);
    return this.settledCount;
  }

  /** @returns why it has failed */
  private async storm(): Promise<string | undefined> {
    const { seed, minMs, maxMs, holdMs, faults } = this.options;
    const endless = faultsOf(seed, { minMs, maxMs, holdMs });
    const next = (): Fault => endless.next().value as Fault;
    let fault = next();
    let faultAtMs = 0;
    let giveUpAtMs = 0;
    for (;;) {
      const nowMs = performance.now();
      this.work();
      const settled = this.settled();
      const share = this.pace.share(settled, nowMs);
      const mayStrike =
        settled >= this.beforeFaults && this.isFirstCutOver(nowMs) && this.isReturnOver(nowMs);
      if (mayStrike && !this.hasWiped && share >= 0.5) await this.wipe();
      if (share >= 1 || (this.faultCount >= faults && this.hasWiped)) break;
      const failed = this.pace.whyFailed(String(settled), nowMs);
      if (failed !== undefined) return failed;
      if (
        mayStrike &&
        nowMs >= faultAtMs &&
        this.faultCount < this.pace.faultsDue(settled, nowMs)
      ) {
        const hasStruck = this.strike(fault);
        if (hasStruck) this.count(fault.kind);
        if (giveUpAtMs === 0) giveUpAtMs = nowMs + NO_VICTIM_MS;
        // With none of that kind there for long, the next one has its turn.
        if (hasStruck || nowMs >= giveUpAtMs) {
          fault = next();
          faultAtMs = nowMs + fault.afterMs;
          giveUpAtMs = 0;
        } else faultAtMs = nowMs + PAUSE_MS;
      }
      await wait(PAUSE_MS);
    }
    if (!this.hasWiped) this.problems.push("it ended before the servers lost their disks");
    if (this.firstCutToMs === undefined && this.ids.length > this.beforeFaults)
      this.problems.push("no machine was cut off during a long run");
    if (this.returnToMs === undefined && this.ids.length > this.beforeFaults + LONG_AT_CUT)
      this.problems.push("no machine came back while its replacement ran");
    return undefined;
  }

  /**
   * Cuts off a machine that has begun a long run, and does nothing else until that would have ended: there is no other reason to find that it
   * went on beside the next one.
   */
  private isFirstCutOver(nowMs: number): boolean {
    const ids = new Set(this.ids.slice(this.beforeFaults, this.beforeFaults + LONG_AT_CUT));
    if (this.firstCutToMs === undefined && ids.size > 0) {
      const machine = this.machines.find(({ name }) =>
        readRuns(this.dir, name).some(({ task, endMs }) => ids.has(task) && endMs === undefined),
      );
      if (machine === undefined) return false;
      const holdMs = this.longMs;
      this.cut(machine, { holdMs, isLost: false });
      this.count("cut a machine off");
      this.firstCutToMs = nowMs + holdMs;
    }
    return nowMs >= (this.firstCutToMs ?? 0);
  }

  /** Kills a machine during a run of a task that may be run once only, and does nothing else until its replacement would have ended. */
  private isReturnOver(nowMs: number): boolean {
    const first = this.beforeFaults + LONG_AT_CUT;
    const ids = new Set(this.ids.slice(first, first + ONCE_AT_RETURN));
    if (this.returnToMs === undefined && ids.size > 0) {
      const machine = this.machines.find(({ name }) =>
        readRuns(this.dir, name).some(({ task, endMs }) => ids.has(task) && endMs === undefined),
      );
      if (machine === undefined) return false;
      const holdMs = RETURN_AFTER * this.options.ackWaitMs;
      machine.rest(holdMs);
      this.signal(machine, pidsOf(machine), "SIGKILL", "kill a machine", holdMs);
      this.count("kill a machine");
      this.returnToMs = nowMs + holdMs + this.longMs;
    }
    return nowMs >= (this.returnToMs ?? 0);
  }

  private tell(settled: number): void {
    const nowMs = performance.now();
    if (nowMs < this.tellAtMs) return;
    const { short, long } = TELL_MS;
    this.tellAtMs = nowMs + (this.options.tasks > LONG_TASKS ? long : short);
    const minutes = this.pace.minutes(nowMs);
    const rate = minutes > 0 ? (settled / minutes / 60).toFixed(1) : "0";
    this.options.onProgress?.(
      `minute ${minutes.toFixed(1)}: ${this.faultCount} faults, ${this.dropped} dropped, ${settled} settled (${rate}/s), ${this.undo.length} struck now`,
    );
  }

  /** Drops tasks, and keeps all running. */
  private work(): void {
    const settled = this.settled();
    this.recovery.look(settled, Date.now());
    this.tell(settled);
    const max = settled < this.beforeFaults ? this.beforeFaults : settled + AHEAD_MAX;
    for (; this.dropped < Math.min(max, this.options.tasks); this.dropped++)
      this.drop(this.dropped);
    for (const machine of [this.origin, ...this.machines]) machine.keep();
    this.undoDue();
    this.noteLate();
  }

  private drop(at: number): void {
    const { chance, beforeFaults } = this;
    const isBefore = at < beforeFaults;
    const planned = beforeFaults + LONG_AT_CUT + ONCE_AT_RETURN;
    const isPlanned = !isBefore && at < planned;
    const agent = chance.below(20) === 0 && at >= planned ? "out" : "far";
    const isOnce = isPlanned ? at >= beforeFaults + LONG_AT_CUT : chance.below(ONCE_ONE_IN) === 0;
    const isLong = isPlanned || (isBefore ? at < LONG_BEFORE : chance.below(LONG_ONE_IN) === 0);
    const ms = isLong ? this.longMs : chance.below(RUN_MS_MAX);
    const fails = isBefore ? !isLong : !isPlanned && chance.below(FAILS_ONE_IN) === 0;
    const id = this.ids[at] ?? "";
    const isLast = isOnce && !fails && !isBefore;
    if (isLast) this.once.add(id);
    const task = { agent, prompt: "?", payload: { ms, fails } };
    this.origin.pool.drop(id, isLast ? { ...task, max_attempts: 1 } : task);
  }

  /** On a machine that is too slow beats come late: a run may then happen twice without a fault of ours. */
  private noteLate(): void {
    const nowMs = Date.now();
    if (nowMs < this.lateLookMs) return;
    this.lateLookMs = nowMs + LATE_LOOK_MS;
    const all = [this.origin, ...this.machines].map(
      (one) => [one.name, one.pidOf("bridge")] as const,
    );
    for (const [whom, pid] of [
      ...all,
      ...this.servers.all.map(({ pid }) => ["servers", pid] as const),
    ]) {
      const fromMs = pid === undefined ? undefined : this.lateness.since(pid, nowMs);
      if (fromMs === undefined) continue;
      this.late.push({ whom, fromMs, toMs: nowMs });
    }
  }

  private undoDue(isAll = false): void {
    for (let at = this.undo.length - 1; at >= 0; at--) {
      const { atMs, act } = this.undo[at] as { atMs: number; act: () => void | Promise<void> };
      if (!isAll && performance.now() < atMs) continue;
      this.undo.splice(at, 1);
      Promise.resolve(act()).catch((error: unknown) => this.problems.push(String(error)));
    }
  }

  private async wipe(): Promise<void> {
    this.hasWiped = true;
    this.note("all servers lose their disks", "servers", 0);
    await this.servers.wipe();
    this.count("all servers lose their disks");
  }

  private count(kind: FaultKind): void {
    this.counts.set(kind, (this.counts.get(kind) ?? 0) + 1);
  }

  private note(kind: FaultKind, whom: string, holdMs: number): void {
    const fromMs = Date.now();
    const fault = { kind, whom, fromMs, toMs: fromMs + holdMs };
    this.struck.push(fault);
    if (whom === "servers") this.recovery.watch(fault);
  }

  /** @returns false when there is no victim now */
  private strike(fault: Fault): boolean {
    const all = [this.origin, ...this.machines];
    const machine = all[Math.floor(fault.victim * all.length)] as Machine;
    switch (fault.kind) {
      case "kill a bridge":
        return this.signal(machine, [machine.pidOf("bridge")], "SIGKILL", fault.kind, 0);
      case "kill a supervisor":
        return this.signal(machine, [machine.pidOf("run")], "SIGKILL", fault.kind, 0);
      case "kill a worker": {
        const workers = findVictims(machine.pool.dir).filter(({ role }) => role === "worker");
        const victim = workers[Math.floor((fault.victim * 1e6) % workers.length)];
        return this.signal(machine, [victim?.pid], "SIGKILL", fault.kind, 0);
      }
      case "kill a machine": {
        machine.rest(fault.holdMs);
        return this.signal(machine, pidsOf(machine), "SIGKILL", fault.kind, fault.holdMs);
      }
      case "stop a bridge":
        return this.signal(machine, [machine.pidOf("bridge")], "SIGSTOP", fault.kind, fault.holdMs);
      case "stop a machine":
        return this.signal(machine, pidsOf(machine), "SIGSTOP", fault.kind, fault.holdMs);
      case "cut a machine off":
        return this.cut(machine, fault);
      case "kill a server":
      case "kill most servers":
      case "stop a server":
        return this.strikeServers(fault);
      case "all servers lose their disks":
        return false;
    }
  }

  private cut(machine: Machine, { holdMs, isLost }: Pick<Fault, "holdMs" | "isLost">): boolean {
    if (this.cutOff.has(machine)) return false;
    this.cutOff.add(machine);
    for (const line of machine.lines) line.cut();
    this.note("cut a machine off", machine.name, holdMs);
    this.later(holdMs, () => {
      this.cutOff.delete(machine);
      for (const line of machine.lines) line.mend(isLost);
    });
    return true;
  }

  private strikeServers({ kind, victim, holdMs }: Fault): boolean {
    // One that starts is no victim: the storm waits for its answer.
    const alive = this.servers.all.filter(({ isReady }) => isReady);
    // The others go on.
    if (alive.length < this.servers.all.length) return false;
    const count = kind === "kill most servers" ? Math.ceil((alive.length + 1) / 2) : 1;
    const first = Math.floor(victim * alive.length);
    this.note(kind, "servers", holdMs);
    for (let at = 0; at < count; at++) {
      const server = alive[(first + at) % alive.length];
      if (kind === "stop a server") {
        void server?.kill("SIGSTOP");
        this.later(holdMs, () => server?.kill("SIGCONT"));
      } else {
        void server?.kill();
        this.later(holdMs, async () => {
          if (server?.isRunning === false) await server.start();
        });
      }
    }
    return true;
  }

  private signal(
    { name }: Machine,
    pids: readonly (number | undefined)[],
    signal: "SIGKILL" | "SIGSTOP",
    kind: FaultKind,
    holdMs: number,
  ): boolean {
    const struck = pids.filter((pid) => isSignalled(pid, signal)) as number[];
    if (struck.length === 0) return false;
    this.note(kind, name, holdMs);
    if (signal === "SIGSTOP")
      this.later(holdMs, () => {
        for (const pid of struck) signalTo({ pid }, "SIGCONT");
      });
    return true;
  }

  private later(ms: number, act: () => void | Promise<void>): void {
    this.undo.push({ atMs: performance.now() + ms, act });
  }

  /** No more faults: everything must come to its end. @returns why it does not */
  private async calm(): Promise<string | undefined> {
    this.undoDue(true);
    for (const server of this.servers.all) if (!server.isRunning) await server.start();
    for (;;) {
      this.work();
      const settled = this.settled();
      if (settled >= this.ids.length && this.isAtRest()) return undefined;
      const notes = this.machines.reduce((sum, machine) => sum + notesOf(machine).length, 0);
      const failed = this.pace.whyFailed(`${settled} ${notes}`, performance.now());
      if (failed !== undefined) return failed;
      await wait(10 * PAUSE_MS);
    }
  }

  private isAtRest(): boolean {
    const { inbox, processing } = this.origin.pool;
    return (
      [inbox, processing].every((dir) => fs.readdirSync(dir).length === 0) &&
      this.machines.every((machine) => notesOf(machine).length === 0)
    );
  }

  private whatIsLeft(): string {
    const { inbox, processing } = this.origin.pool;
    const parts = [
      ...[inbox, processing].map((dir) => listed(dir, fs.readdirSync(dir))),
      ...this.machines.map((machine) => listed(machine.name, notesOf(machine))),
      ...[this.origin, ...this.machines].map((machine) => machine.said()),
    ];
    return parts.join("\n");
  }
}

function isSignalled(pid: number | undefined, signal: NodeJS.Signals): boolean {
  return pid !== undefined && signalTo({ pid }, signal);
}

function listed(name: string, files: readonly string[]): string {
  return `${name}: ${files.length} (${files.slice(0, 5).join(", ")})`;
}

function notesOf({ pool }: Machine): string[] {
  const dir = join(pool.state, "cluster", "jobs");
  return fs.existsSync(dir) ? fs.readdirSync(dir).filter((file) => file.endsWith(".json")) : [];
}

function pidsOf({ pool }: Machine): number[] {
  return findVictims(pool.dir).map(({ pid }: Victim) => pid);
}
