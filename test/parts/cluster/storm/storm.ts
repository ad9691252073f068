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
import { checkStorm, LATE_LOOK_MS, type Struck } from "./check.ts";
import { type Fault, type FaultKind, faultsOf } from "./faults.ts";
import { Lateness } from "./late.ts";
import { Machine } from "./machine.ts";
import { Servers } from "./servers.ts";

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
  /** The faults end after this time even if there were fewer (s). */
  seconds: number;
  /** Time after the last fault in which everything must have settled (s). */
  calmSeconds: number;
  /** A name of `broken.ts`: bridges are broken so. */
  broken?: string;
  onEnd: OnEnd;
  onProgress?: (progress: string) => void;
}

export interface StormResult {
  dir: string;
  tasks: number;
  faults: Map<FaultKind, number>;
  starts: number;
  runs: number;
  /** Runs of a dispatch that had been begun before. */
  runsAgain: number;
  /** How often a bridge or a server had to wait for a processor. */
  late: number;
  seconds: number;
  problems: string[];
}

const PAUSE_MS = 25;
const TELL_MS = 10_000;
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
/** The part of the faults that come before anything has settled. */
const AHEAD = 0.1;
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
  const script = `echo "start $MAILCHUTE_TASK_ID $(date +%s%3N)" >> "${trace}"; sleep 0.1; echo "end $MAILCHUTE_TASK_ID $(date +%s%3N)" >> "${trace}"`;
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

export function tracePath(dir: string, machine: string): string {
  return join(dir, `${machine}.trace`);
}

class Storm {
  private readonly dir: string;
  private readonly servers: Servers;
  private readonly origin: Machine;
  private readonly machines: readonly Machine[];
  private readonly o: StormOptions;
  private readonly ids: string[];
  private readonly chance: ReturnType<typeof seededRandom>;
  private readonly counts = new Map<FaultKind, number>();
  /** What was struck, other than supervisors and workers, and how long it lasted: only that may make a run happen twice. */
  private readonly struck: Struck[] = [];
  /** What is to be undone, and when (ms). */
  private readonly undo: { atMs: number; act: () => void | Promise<void> }[] = [];
  private readonly problems: string[] = [];
  private readonly cutOff = new Set<Machine>();
  private readonly late: Struck[] = [];
  private readonly lateness = new Lateness();
  private lateLookMs = 0;
  private dropped = 0;
  private hasWiped = false;

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
    this.o = o;
    this.ids = Array.from({ length: o.tasks }, (_, n) => `t${String(n).padStart(6, "0")}`);
    this.chance = seededRandom(o.seed);
  }

  async run(): Promise<StormResult> {
    const startMs = performance.now();
    await this.storm();
    await this.calm();
    const all = [this.origin, ...this.machines];
    for (const { pool } of all) await pool.killAll();
    const { problems, runs, runsAgain } = checkStorm({
      dir: this.dir,
      origin: this.origin,
      machines: this.machines,
      ids: this.ids,
      struck: this.struck,
      late: this.late,
      ackWaitMs: this.o.ackWaitMs,
    });
    return {
      dir: this.dir,
      tasks: this.ids.length,
      faults: this.counts,
      starts: all.reduce((sum, { starts }) => sum + starts, 0),
      runs,
      runsAgain,
      late: this.late.length,
      seconds: (performance.now() - startMs) / 1000,
      problems: [...this.problems, ...all.flatMap((one) => one.problems), ...problems],
    };
  }

  /** So many tasks settle before the first fault. */
  private get beforeFaults(): number {
    return Math.min(LONG_BEFORE + FAILS_BEFORE, this.o.tasks);
  }

  private get faultCount(): number {
    return [...this.counts.values()].reduce((sum, count) => sum + count, 0);
  }

  /** How many there may have been by now: in proportion to what has settled, so that there is work until the last one. */
  private faultsDue(settled: number): number {
    const { faults, tasks } = this.o;
    return Math.min(faults, faults * AHEAD + (faults * settled) / tasks);
  }

  private async storm(): Promise<void> {
    const { seed, minMs, maxMs, holdMs, seconds } = this.o;
    const faults = faultsOf(seed, { minMs, maxMs, holdMs });
    const next = (): Fault => faults.next().value as Fault;
    let fault = next();
    const startMs = performance.now();
    let faultAtMs = Number.POSITIVE_INFINITY;
    let giveUpAtMs = 0;
    let tellAtMs = startMs + TELL_MS;
    const isOver = (): boolean =>
      performance.now() - startMs >= seconds * 1000 ||
      this.origin.pool.settledCount() >= this.ids.length ||
      (this.faultCount >= this.o.faults && this.hasWiped);
    while (!isOver()) {
      const nowMs = performance.now();
      this.work();
      const settled = this.origin.pool.settledCount();
      if (settled >= this.beforeFaults && faultAtMs === Number.POSITIVE_INFINITY) faultAtMs = nowMs;
      if (!this.hasWiped && settled >= this.ids.length / 2) await this.wipe();
      if (nowMs >= faultAtMs && this.faultCount < this.faultsDue(settled)) {
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
      if (nowMs >= tellAtMs) {
        tellAtMs = nowMs + TELL_MS;
        this.tell(settled);
      }
      await wait(PAUSE_MS);
    }
    if (!this.hasWiped) this.problems.push("it ended before the servers lost their disks");
  }

  private tell(settled: number): void {
    this.o.onProgress?.(
      `${this.faultCount} faults, ${this.dropped} dropped, ${settled} settled, ${this.undo.length} struck now`,
    );
  }

  /** Drops tasks, and keeps all running. */
  private work(): void {
    const settled = this.origin.pool.settledCount();
    const max = settled < this.beforeFaults ? this.beforeFaults : settled + AHEAD_MAX;
    for (; this.dropped < Math.min(max, this.o.tasks); this.dropped++) this.drop(this.dropped);
    for (const machine of [this.origin, ...this.machines]) machine.keep();
    this.undoDue();
    this.noteLate();
  }

  private drop(at: number): void {
    const { chance, beforeFaults, o } = this;
    const isBefore = at < beforeFaults;
    const agent = chance.below(20) === 0 && !isBefore ? "out" : "far";
    const isLong = isBefore ? at < LONG_BEFORE : chance.below(LONG_ONE_IN) === 0;
    const ms = isLong ? 2 * o.ackWaitMs : chance.below(RUN_MS_MAX);
    const fails = isBefore ? !isLong : chance.below(FAILS_ONE_IN) === 0;
    this.origin.pool.drop(this.ids[at] ?? "", { agent, prompt: "?", payload: { ms, fails } });
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
      void act();
    }
  }

  private async wipe(): Promise<void> {
    this.hasWiped = true;
    this.note("servers", 0);
    await this.servers.wipe();
    this.count("all servers lose their disks");
  }

  private count(kind: FaultKind): void {
    this.counts.set(kind, (this.counts.get(kind) ?? 0) + 1);
  }

  private note(whom: string, holdMs: number): void {
    const fromMs = Date.now();
    this.struck.push({ whom, fromMs, toMs: fromMs + holdMs });
  }

  /** @returns false when there is no victim now */
  private strike(fault: Fault): boolean {
    const all = [this.origin, ...this.machines];
    const machine = all[Math.floor(fault.victim * all.length)] as Machine;
    switch (fault.kind) {
      case "kill a bridge":
        return this.signal(machine, [machine.pidOf("bridge")], "SIGKILL", 0);
      case "kill a supervisor":
        return isSignalled(machine.pidOf("run"), "SIGKILL");
      case "kill a worker": {
        const workers = findVictims(machine.pool.dir).filter(({ role }) => role === "worker");
        const victim = workers[Math.floor((fault.victim * 1e6) % workers.length)];
        return isSignalled(victim?.pid, "SIGKILL");
      }
      case "kill a machine": {
        machine.rest(fault.holdMs);
        return this.signal(machine, pidsOf(machine), "SIGKILL", fault.holdMs);
      }
      case "stop a bridge":
        return this.signal(machine, [machine.pidOf("bridge")], "SIGSTOP", fault.holdMs);
      case "stop a machine":
        return this.signal(machine, pidsOf(machine), "SIGSTOP", fault.holdMs);
      case "cut a machine off": {
        if (this.cutOff.has(machine)) return false;
        this.cutOff.add(machine);
        for (const line of machine.lines) line.cut();
        this.note(machine.name, fault.holdMs);
        this.later(fault.holdMs, () => {
          this.cutOff.delete(machine);
          for (const line of machine.lines) line.mend(fault.isLost);
        });
        return true;
      }
      case "kill a server":
      case "kill most servers":
      case "stop a server":
        return this.strikeServers(fault);
      case "all servers lose their disks":
        return false;
    }
  }

  private strikeServers({ kind, victim, holdMs }: Fault): boolean {
    const alive = this.servers.all.filter(({ isRunning }) => isRunning);
    // The others go on.
    if (alive.length < this.servers.all.length) return false;
    const count = kind === "kill most servers" ? Math.ceil((alive.length + 1) / 2) : 1;
    const first = Math.floor(victim * alive.length);
    this.note("servers", holdMs);
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
    holdMs: number,
  ): boolean {
    const struck = pids.filter((pid) => isSignalled(pid, signal)) as number[];
    if (struck.length === 0) return false;
    this.note(name, holdMs);
    if (signal === "SIGSTOP")
      this.later(holdMs, () => {
        for (const pid of struck) signalTo({ pid }, "SIGCONT");
      });
    return true;
  }

  private later(ms: number, act: () => void | Promise<void>): void {
    this.undo.push({ atMs: performance.now() + ms, act });
  }

  /** No more faults: everything must come to its end. */
  private async calm(): Promise<void> {
    this.undoDue(true);
    for (const server of this.servers.all) if (!server.isRunning) await server.start();
    const deadlineMs = performance.now() + this.o.calmSeconds * 1000;
    let tellAtMs = performance.now() + TELL_MS;
    for (;;) {
      this.work();
      const settled = this.origin.pool.settledCount();
      if (settled >= this.ids.length && this.isAtRest()) return;
      if (performance.now() > deadlineMs) {
        this.problems.push(`not at rest within ${this.o.calmSeconds} s: ${this.whatIsLeft()}`);
        return;
      }
      if (performance.now() >= tellAtMs) {
        tellAtMs += TELL_MS;
        this.tell(settled);
      }
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
