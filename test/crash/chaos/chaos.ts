/**
 * A pool of four workers and two supervisors that fight for it, while processes are killed and stopped, clocks are shifted
 * and commands thrown in; then calm, and the check whether each task settled once.
 */
import fs from "node:fs";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { parseName } from "../../../src/core/names.ts";
import { parseOwner } from "../../../src/host/identity.ts";
import { Liveness } from "../../support/liveness.ts";
import { newPool, type Pool, type Running } from "../../support/pool.ts";
import { seededRandom } from "../../support/seeded-random.ts";
import type { OnEnd } from "../../support/temp-dir.ts";
import { checkChaos, Witness } from "./check.ts";
import { type Fault, type FaultKind, faultsOf, SHIFT_MS_MAX } from "./faults.ts";
import { findVictims, signalTo, type Victim } from "./victims.ts";
import { commandsOf, HANDLER, makeWork, traceIn, type Work } from "./work.ts";

export interface ChaosOptions {
  seed: number;
  tasks: number;
  faults: number;
  /** Time between two faults (ms). */
  minMs: number;
  maxMs: number;
  /** The faults end after this time even if there were fewer (s). */
  seconds: number;
  /** Time after the last fault in which everything must have settled (s). */
  calmSeconds: number;
  /** Name of a broken variant of the protocol (broken.mjs). */
  broken?: string;
  onEnd: OnEnd;
  /** Called every ten seconds. */
  onProgress?: (progress: string) => void;
}

export interface ChaosResult {
  dir: string;
  tasks: number;
  /** Faults that struck, by kind. */
  faults: Map<FaultKind, number>;
  commands: number;
  starts: number;
  /** Runs that began, and runs that were needed. */
  runs: number;
  runsNeeded: number;
  seconds: number;
  /** The longest that a task could have run and did not (ms). */
  longestIdleMs: number;
  problems: string[];
}

const LEASE_TTL_MS = 1500;
const SLOTS = 8;
const BACKOFF_MAX_MS = 100;
/** What could run for so long and does not waits for nothing (ms). */
const IDLE_MS_MAX = 15_000;
/** How long a retry is waited for that a clock which is ahead has put off (ms). */
const PUT_OFF_MS = 3000;
/** proper-lockfile takes a lock of this age for left behind; a supervisor renews its own every 2.5 s. */
const LOCK_AGE_S = 60;
const PAUSE_MS = 20;
const LOOK_MS = 500;
/** A refused or ended supervisor is started again after this time (ms). */
const RESTART_MS = 3000;
/** Without a victim a fault is tried again after this time, and given up after that (ms). */
const RETRY_MS = 100;
const NO_VICTIM_MS = 2000;

const CONFIG = `
workers: ${SLOTS}
processes: 4
durability: process
settle_ms: 300
sweep_ms: 200
grace_ms: 300
heartbeat_ms: 200
lease_ttl_ms: ${LEASE_TTL_MS}
retention: {outbox_days: 100, failed_days: 100}
retry: {max_attempts: 1000, backoff_ms: 20, backoff_max_ms: ${BACKOFF_MAX_MS}}
agents:
  - {name: chaos, kind: module, module: ${HANDLER}, default: true}
`;

const pathOf = (name: string): string => fileURLToPath(new URL(name, import.meta.url));

export async function runChaos(o: ChaosOptions): Promise<ChaosResult> {
  const preloads = ["clock-shift.mjs", ...(o.broken === undefined ? [] : ["broken.mjs"])];
  const env: Record<string, string> = {
    NODE_OPTIONS: preloads.map((name) => `--import=${pathOf(name)}`).join(" "),
  };
  if (o.broken !== undefined) env["MAILCHUTE_CHAOS_BROKEN"] = o.broken;
  const pool = newPool({ config: CONFIG, onEnd: o.onEnd, env });
  return new Chaos(pool, env, o).run();
}

class Chaos {
  private readonly pool: Pool;
  private readonly o: ChaosOptions;
  private readonly clocks: string;
  private readonly work: readonly Work[];
  private readonly witness: Witness;
  private readonly liveness: Liveness;
  private readonly problems: string[] = [];
  private readonly struck = new Map<FaultKind, number>();
  /** Two, when all is well: one supervises, the other is refused or takes over. */
  private readonly supervisors: (Running | undefined)[] = [undefined, undefined];
  private readonly startAtMs = [0, 300];
  private readonly stopped: { victim: Victim; contAtMs: number }[] = [];
  private starts = 0;
  private dropped = 0;
  private commands = 0;
  private machineShiftMs = 0;
  private isCalm = false;

  constructor(pool: Pool, env: Record<string, string>, o: ChaosOptions) {
    this.pool = pool;
    this.o = o;
    this.clocks = join(pool.dir, "clocks");
    fs.mkdirSync(this.clocks);
    env["MAILCHUTE_CLOCK_DIR"] = this.clocks;
    this.work = makeWork(o.seed, o.tasks, traceIn(pool.dir));
    this.witness = new Witness(pool.state);
    const dependencies = new Map(this.work.map((work) => [work.id, dependenciesOf(work)]));
    this.liveness = new Liveness(pool, {
      slots: SLOTS,
      backoffMaxMs: BACKOFF_MAX_MS,
      limitMs: IDLE_MS_MAX,
      isWaiting: (id) =>
        dependencies
          .get(id)
          ?.some((other) => !fs.existsSync(join(pool.outbox, `${other}_result.json`))) === true,
    });
  }

  async run(): Promise<ChaosResult> {
    const startMs = performance.now();
    await this.storm();
    await this.calm();
    const { runs, runsNeeded, problems } = checkChaos(this.pool, this.work, this.witness);
    return {
      dir: this.pool.dir,
      tasks: this.work.length,
      faults: this.struck,
      commands: this.commands,
      starts: this.starts,
      runs,
      runsNeeded,
      seconds: (performance.now() - startMs) / 1000,
      longestIdleMs: this.liveness.longestMs,
      problems: [...this.problems, ...this.liveness.problems, ...problems],
    };
  }

  private get faultCount(): number {
    return [...this.struck.values()].reduce((sum, count) => sum + count, 0);
  }

  private async storm(): Promise<void> {
    const { seed, minMs, maxMs, seconds } = this.o;
    const faults = faultsOf(seed, { minMs, maxMs, leaseTtlMs: LEASE_TTL_MS });
    const steering = commandsOf(seed);
    let fault = nextOf(faults);
    let command = nextOf(steering);
    // Counted from the first settled task on.
    let startMs = performance.now();
    let faultAtMs = Number.POSITIVE_INFINITY;
    let giveUpAtMs = 0;
    let commandAtMs = startMs;
    let lookAtMs = startMs;
    let tellAtMs = startMs + 10_000;
    while (this.faultCount < this.o.faults && performance.now() - startMs < seconds * 1000) {
      const nowMs = performance.now();
      this.drop();
      this.keepTwo();
      this.wakeDue();
      if (faultAtMs === Number.POSITIVE_INFINITY) {
        startMs = nowMs;
        if (this.witness.settled > 0) faultAtMs = nowMs;
      }
      if (nowMs >= faultAtMs) {
        const hasStruck = this.strike(fault);
        if (hasStruck) this.struck.set(fault.kind, (this.struck.get(fault.kind) ?? 0) + 1);
        if (giveUpAtMs === 0) giveUpAtMs = nowMs + NO_VICTIM_MS;
        // With nobody of that kind there for long, the next one has its turn.
        if (hasStruck || nowMs >= giveUpAtMs) {
          fault = nextOf(faults);
          faultAtMs = nowMs + fault.afterMs;
          giveUpAtMs = 0;
        } else faultAtMs = nowMs + RETRY_MS;
      }
      if (nowMs >= commandAtMs) {
        this.give(command.body, command.subject);
        command = nextOf(steering);
        commandAtMs = nowMs + command.afterMs;
      }
      if (nowMs >= lookAtMs) {
        this.witness.look();
        this.liveness.look(this.chief() !== undefined);
        lookAtMs = nowMs + LOOK_MS;
      }
      if (nowMs >= tellAtMs) {
        tellAtMs = nowMs + 10_000;
        const { settled } = this.witness;
        this.o.onProgress?.(
          `${this.faultCount} faults, ${this.dropped} dropped, ${settled} settled, ${this.starts} starts`,
        );
      }
      await wait(PAUSE_MS);
    }
    this.witness.look();
  }

  /** As many tasks as faults have struck, in proportion: there is work until the last fault. */
  private drop(): void {
    const ahead = Math.min(60, Math.ceil(this.o.tasks / 4));
    const due = Math.floor((this.o.tasks * this.faultCount) / this.o.faults) + ahead;
    while (this.dropped < Math.min(due, this.work.length)) this.dropNext();
  }

  private dropNext(): void {
    const { file, text } = this.work[this.dropped] as Work;
    this.dropped += 1;
    const staged = join(this.pool.dir, file);
    fs.writeFileSync(staged, text);
    fs.renameSync(staged, join(this.pool.inbox, file));
  }

  private give(body: { command: string; args?: Record<string, unknown> }, subject?: number): void {
    const { command, args = {} } = body;
    if (subject !== undefined) {
      const fits = (work: Work): boolean =>
        command === "retry"
          ? work.ends.includes("failed") && work.lines === undefined
          : args["final"] !== true || work.kind.startsWith("slow");
      const recent = this.work.slice(Math.max(0, this.dropped - 120), this.dropped).filter(fits);
      const work = recent[Math.floor(subject * recent.length)];
      if (work === undefined) return;
      args["node"] = work.id;
      if (args["final"] === true) this.witness.cancelled.add(work.id);
      if (command === "retry") this.witness.retried.add(work.id);
    }
    const id = `c-${String(this.commands).padStart(5, "0")}`;
    this.commands += 1;
    this.witness.commands.add(id);
    const staged = join(this.pool.dir, `${id}.json`);
    fs.writeFileSync(staged, JSON.stringify({ command, args }));
    const inbox = join(this.pool.state, "control", "inbox");
    fs.mkdirSync(inbox, { recursive: true, mode: 0o700 });
    fs.renameSync(staged, join(inbox, `${id}.json`));
  }

  private keepTwo(): void {
    for (const [slot, running] of this.supervisors.entries()) {
      if (running !== undefined || performance.now() < (this.startAtMs[slot] ?? 0)) continue;
      this.supervisors[slot] = this.startSupervisor(slot, ["run", "--no-live"]);
    }
  }

  private startSupervisor(slot: number, args: readonly string[]): Running {
    this.starts += 1;
    const running = this.pool.spawn(args);
    // Not `ended`: workers that outlive it keep its output open.
    running.child.once("exit", (code, signal) => {
      if (signal === null) this.startAtMs[slot] = performance.now() + RESTART_MS;
      this.supervisors[slot] = undefined;
      // Refused, or robbed: 4. Anything else that is no signal is a fault of the product.
      const isFine = signal !== null || code === 4 || this.isCalm;
      if (!isFine) this.problems.push(`a supervisor ended with ${code}: ${running.stderr()}`);
      const trace = /^.*(?:\n {4}at .*)+/m.exec(running.stderr())?.[0];
      if (trace !== undefined) this.problems.push(`a supervisor or its workers threw: ${trace}`);
    });
    return running;
  }

  /** @returns false when there is no victim now */
  private strike(fault: Fault): boolean {
    const all = findVictims(this.pool.dir);
    // Mostly those that hold a lease: others have nothing to lose, and on a slow machine none would ever come to work.
    const holders = holdersOf(this.pool);
    const pick = (role: Victim["role"]): Victim | undefined => {
      const fit = all.filter(
        (victim) =>
          victim.role === role &&
          !victim.isStopped &&
          (role !== "worker" || fault.isAnybody || holders.has(victim.pid)),
      );
      return fit[Math.floor(fault.victim * fit.length)];
    };
    const signal = (name: NodeJS.Signals, victim: Victim | undefined): boolean => {
      if (victim === undefined || !signalTo(victim, name)) return false;
      const contAtMs = performance.now() + fault.holdMs;
      if (name === "SIGSTOP") this.stopped.push({ victim, contAtMs });
      return true;
    };
    const chief = (): Victim | undefined => this.chief(all);
    switch (fault.kind) {
      case "kill worker":
        return signal("SIGKILL", pick("worker"));
      case "kill supervisor":
      case "kill all": {
        // Not before there is work again.
        if (holders.size === 0 && !fault.isAnybody) return false;
        const chosen = fault.kind === "kill all" ? all : [chief()];
        // The next one's turn.
        this.startAtMs.fill(performance.now() + 100);
        return chosen.filter((victim) => signal("SIGKILL", victim)).length > 0;
      }
      case "kill program":
        return signal("SIGKILL", pick("program"));
      case "stop worker":
      case "stop worker past its lease":
        return signal("SIGSTOP", pick("worker"));
      case "stop supervisor":
        return signal("SIGSTOP", chief());
      case "stop supervisor past its lock":
        return signal("SIGSTOP", chief()) && this.ageLock();
      case "stop program":
        return signal("SIGSTOP", pick("program"));
      case "rob the lock":
        return this.ageLock();
      case "shift one clock": {
        const victim = pick(fault.victim < 0.4 ? "supervisor" : "worker");
        if (victim === undefined) return false;
        this.shiftClock(String(victim.pid), fault.shiftMs);
        return true;
      }
      case "shift all clocks":
        this.machineShiftMs = clampShift(this.machineShiftMs + fault.shiftMs);
        this.shiftClock("machine", this.machineShiftMs);
        return true;
    }
  }

  /** The one that supervises; the other is mostly about to be refused. */
  private chief(all = findVictims(this.pool.dir)): Victim | undefined {
    const pid = this.pool.supervisor()?.pid;
    return all.find((one) => one.pid === pid && !one.isStopped);
  }

  /** Makes the lock look left behind, so that the next supervisor takes it, whether or not its owner lives. */
  private ageLock(): boolean {
    const seconds = Date.now() / 1000 - LOCK_AGE_S;
    try {
      fs.utimesSync(join(this.pool.state, "supervisor.lock"), seconds, seconds);
    } catch {
      return false;
    }
    this.startAtMs.fill(0);
    return true;
  }

  private shiftClock(name: string, shiftMs: number): void {
    const staged = join(this.pool.dir, "clock.tmp");
    fs.writeFileSync(staged, String(shiftMs));
    fs.renameSync(staged, join(this.clocks, name));
  }

  private wakeDue(isAll = false): void {
    for (let at = this.stopped.length - 1; at >= 0; at--) {
      const { victim, contAtMs } = this.stopped[at] as { victim: Victim; contAtMs: number };
      if (!isAll && performance.now() < contAtMs) continue;
      this.stopped.splice(at, 1);
      signalTo(victim, "SIGCONT");
    }
  }

  /** No more faults: everything must come to its end. */
  private async calm(): Promise<void> {
    this.isCalm = true;
    await this.putOff();
    while (this.dropped < this.work.length) this.dropNext();
    this.give({ command: "resume" });
    this.give({ command: "set-workers", args: { workers: SLOTS } });
    this.wakeDue(true);
    for (const victim of findVictims(this.pool.dir)) signalTo(victim, "SIGKILL");
    await this.untilNone(10_000);
    fs.rmSync(this.clocks, { recursive: true });
    // All clocks are right: what a wrong one has put off is due all the same.
    fs.mkdirSync(this.clocks);
    const last = this.startSupervisor(0, ["run", "--no-live", "--drain"]);
    const deadlineMs = performance.now() + this.o.calmSeconds * 1000;
    while (last.child.exitCode === null && last.child.signalCode === null) {
      if (performance.now() > deadlineMs) {
        this.problems.push(`the last drain did not end within ${this.o.calmSeconds} s`);
        signalTo(last, "SIGKILL");
        break;
      }
      this.witness.look();
      this.liveness.look(true);
      await wait(200);
    }
    if (!(await this.untilNone(8000)))
      for (const { pid, role } of findVictims(this.pool.dir))
        this.problems.push(`a ${role} is left behind: ${commandLine(pid)}`);
    this.witness.look();
  }

  /** All clocks are a day ahead while some of what is left is dropped, until one of its retries has been put off. */
  private async putOff(): Promise<void> {
    this.shiftClock("machine", SHIFT_MS_MAX);
    this.give({ command: "resume" });
    const deadlineMs = performance.now() + PUT_OFF_MS;
    const isPutOff = (file: string): boolean => {
      if (parseName(file)?.stage !== "ready") return false;
      const stats = fs.statSync(join(this.pool.processing, file), { throwIfNoEntry: false });
      return stats !== undefined && stats.mtimeMs > Date.now() + SHIFT_MS_MAX / 2;
    };
    for (; performance.now() < deadlineMs; await wait(PAUSE_MS)) {
      if (this.dropped < this.work.length) this.dropNext();
      this.wakeDue();
      if (!fs.readdirSync(this.pool.processing).some(isPutOff)) continue;
      // Before anybody runs it: those who saw it put off know better than its file's time.
      for (const victim of findVictims(this.pool.dir)) signalTo(victim, "SIGKILL");
      return;
    }
  }

  private async untilNone(limitMs: number): Promise<boolean> {
    const deadlineMs = performance.now() + limitMs;
    while (performance.now() < deadlineMs) {
      if (findVictims(this.pool.dir).length === 0) return true;
      await wait(20);
    }
    return false;
  }
}

function nextOf<T>(values: Generator<T>): T {
  return values.next().value as T;
}

function dependenciesOf({ text, lines }: Work): readonly string[] {
  if (lines !== undefined) return [];
  const task = JSON.parse(text) as { metadata?: { dependencies?: string[] } };
  return task.metadata?.dependencies ?? [];
}

function clampShift(ms: number): number {
  return Math.max(-SHIFT_MS_MAX, Math.min(SHIFT_MS_MAX, ms));
}

function commandLine(pid: number): string {
  try {
    return fs.readFileSync(`/proc/${pid}/cmdline`, "utf8").replaceAll("\0", " ");
  } catch {
    return `pid ${pid}`;
  }
}

/** Pids of the processes that have claimed something. */
function holdersOf(pool: Pool): Set<number> {
  const pids = fs.readdirSync(pool.processing).map((file) => {
    const name = parseName(file);
    return name?.stage === "w" ? parseOwner(name.token)?.pid : undefined;
  });
  return new Set(pids.filter((pid) => pid !== undefined));
}

/** A seed by chance. */
export function anySeed(): number {
  return seededRandom(Date.now() ^ process.pid).below(2 ** 31);
}
