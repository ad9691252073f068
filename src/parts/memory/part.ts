/**
 * Starts runs as far as the memory of the machine reaches, whatever the number of slots is. A run that nothing runs beside always starts.
 * When memory gets short even so, the youngest run is put back before the kernel ends one.
 */
import { keyOf } from "../../agents/breaker/breaker-file.ts";
import { matchChosen } from "../../agents/chosen-agent.ts";
import { decodeTask } from "../../codec/task-codec.ts";
import { bytesText } from "../../core/bytes-text.ts";
import type { ClosedGate } from "../../core/documents.ts";
import { messageOf } from "../../core/errors.ts";
import { closedGate, MEMORY_GATE } from "../../core/gates.ts";
import { TASK_BYTES_MAX } from "../../core/limits.ts";
import { foldId, leaseOf, parseName } from "../../core/names.ts";
import { isCoding } from "../../core/settings.ts";
import type { Lane } from "../../core/waiting-task.ts";
import { findClaim } from "../../mailbox/find/locate.ts";
import type {
  Closed,
  Part,
  PartPorts,
  StartLimit,
  StatusSource,
} from "../../supervisor/environment/part.ts";
import { NEVER, type Tick } from "../../supervisor/environment/service.ts";
import type { MakePart, PartHost } from "../../supervisor/part.ts";
import {
  firstOf,
  LIGHT_BYTES,
  type LookAtMemory,
  leastFree,
  type MemoryLook,
  type Refused,
  type RunMemory,
  runsToPutBack,
  whyNoRoom,
} from "./admit.ts";
import { lookAtMemory } from "./machine.ts";
import { UsualPeaks } from "./usual-peaks.ts";

const LOOK_MS = 500;
/** The same while no run needs much. */
const IDLE_LOOK_MS = 2000;
/** A look takes at most this part of the time. */
const LOOKING_PART = 1 / 20;
/** An agent is forgotten when none of its tasks was about to start for so long (ms). */
const ASKED_MS = 5000;
/** While nothing runs, the agent that comes first has this time to start (ms). */
const ALONE_MS = 1000;
/** A start shows in `processing/` within this time (ms). */
const START_MS = 5000;
/** A run that needs memory. */
interface Heavy {
  agent: string;
  sinceMs: number;
  /** What it has now (bytes). */
  bytes: number;
}

type Host = Pick<PartHost, "env"> & {
  queue: { pool: { workers: Pick<PartHost["queue"]["pool"]["workers"], "tellAll"> } };
};

export class MemoryPart implements Part, StartLimit, StatusSource {
  readonly ports: PartPorts = { startLimit: this, status: this };
  version = 0;
  gates: readonly ClosedGate[] = [];
  private readonly peaks: UsualPeaks;
  /** By folded id. */
  private readonly runs = new Map<string, Heavy>();
  private readonly refused = new Map<string, Refused>();
  private seen: MemoryLook | undefined;
  private isBusy = false;
  private lookAtMs = 0;
  private tellAtMs = 0;
  /** Leases of the runs that were told to end. */
  private ending: readonly string[] = [];
  /** Since when nothing that needs memory runs. */
  private aloneMs: number | undefined;
  /** Setting `free_memory_min`. */
  private readonly wanted: number;

  constructor(
    private readonly host: Host,
    private readonly lookAt: LookAtMemory = lookAtMemory,
  ) {
    const { facts, settings } = host.env;
    this.peaks = new UsualPeaks(settings);
    this.wanted = settings.free_memory_min;
    if (this.wanted === 0) return;
    facts.on("journal:line", (line) => this.peaks.readLine(line));
    facts.on("task:settled", (id) => void this.runs.delete(foldId(id)));
    facts.on("task:returned", ({ id }) => void this.runs.delete(foldId(id)));
    facts.on("processing:listed", (files) => this.keepOnly(files));
  }

  async start(): Promise<void> {
    const { alerts, tree } = this.host.env;
    try {
      if (this.wanted > 0) this.peaks.readBack(tree.events);
    } catch (error) {
      alerts.report("memory", `cannot read what runs have needed: ${messageOf(error)}`);
    }
  }

  work({ nowMs }: Tick): void {
    if (this.isBusy) this.look(nowMs);
    for (const [agent, { askedMs }] of this.refused)
      if (nowMs - askedMs > ASKED_MS) this.refused.delete(agent);
    if (this.refused.size > 0 || this.gates.length > 0) this.tell(nowMs);
  }

  nextMs(): number {
    return this.isBusy || this.refused.size > 0 ? this.lookAtMs : NEVER;
  }

  closed({ agent }: Lane): Closed | undefined {
    const need = this.peaks.of(agent);
    if (this.wanted === 0 || need < LIGHT_BYTES) return undefined;
    const nowMs = this.nowMs();
    const why = this.why(agent, need, nowMs);
    if (why === undefined) return undefined;
    const sinceMs = this.refused.get(agent)?.sinceMs ?? nowMs;
    this.refused.set(agent, { sinceMs, askedMs: nowMs, why });
    const told = this.gates.find(({ agents: [one] }) => one === agent);
    return () => told ?? gateOf(agent, why);
  }

  noteStart({ agent }: Lane, id: string): boolean {
    if (this.wanted === 0 || this.peaks.of(agent) < LIGHT_BYTES) return false;
    if (this.runs.size === 0) this.lookAtMs = 0;
    this.runs.set(foldId(id), { agent, sinceMs: this.nowMs(), bytes: 0 });
    if (this.refused.delete(agent)) this.tellAtMs = 0;
    return true;
  }

  private nowMs(): number {
    return this.host.env.trays.clock.monotonicMs();
  }

  private why(agent: string, need: number, nowMs: number): string | undefined {
    this.aloneMs = this.runs.size > 0 ? undefined : (this.aloneMs ?? nowMs);
    const first = firstOf(this.refused, nowMs);
    if (first !== undefined && first !== agent) {
      if (nowMs - (this.aloneMs ?? nowMs) < ALONE_MS)
        return `agent ${first} has waited longer for memory`;
      // Something else holds it back.
      this.refused.delete(first);
    }
    if (this.aloneMs !== undefined) return undefined;
    this.look(nowMs);
    const growth = [...this.runs.values()].reduce(
      (sum, run) => sum + Math.max(0, this.peaks.of(run.agent) - run.bytes),
      0,
    );
    return this.seen && whyNoRoom(need, this.seen, growth, this.wanted);
  }

  private look(nowMs: number): void {
    if (nowMs < this.lookAtMs) return;
    this.seen = this.lookAt();
    const tookMs = this.nowMs() - nowMs;
    for (const run of this.seen?.runs ?? []) {
      if (run.bytes < LIGHT_BYTES) continue;
      const heavy = this.runs.get(foldId(run.id)) ?? this.begun(run);
      if (heavy === undefined) continue;
      heavy.bytes = run.bytes;
      this.peaks.atLeast(heavy.agent, run.bytes);
    }
    const pauseMs = this.runs.size > 0 ? LOOK_MS : IDLE_LOOK_MS;
    this.lookAtMs = nowMs + Math.max(pauseMs, tookMs / LOOKING_PART);
    if (this.seen !== undefined) this.putBack(this.seen);
  }

  /** A run that was thought to be light, or that an earlier supervisor has started. */
  private begun({ id }: RunMemory): Heavy | undefined {
    const { settings, trays, tree } = this.host.env;
    try {
      const claim = findClaim(trays, id);
      const { bytes } = claim ? trays.storage.read(claim.path, TASK_BYTES_MAX) : {};
      if (bytes === undefined) return undefined;
      const { agent } = matchChosen(tree.sessions, decodeTask(bytes, id).task, settings.agents);
      const heavy = { agent: agent?.name ?? "", sinceMs: this.nowMs(), bytes: 0 };
      this.runs.set(foldId(id), heavy);
      return heavy;
    } catch {
      // It has just ended, or it is a batch.
      return undefined;
    }
  }

  /** When memory is short. No attempt is used up, and a coding agent goes on in its session. */
  private putBack(look: MemoryLook): void {
    const { runs, freeBytes } = look;
    const least = leastFree(look, this.wanted);
    const ending = runs.filter(({ lease }) => this.ending.includes(lease));
    this.ending = ending.map(({ lease }) => lease);
    const missing = ending.reduce((sum, { bytes }) => sum - bytes, least - freeBytes);
    if (missing <= 0) return;
    const { alerts, settings } = this.host.env;
    const coding = new Set(settings.agents.filter(isCoding).map(({ name }) => name));
    const others = runs.filter(
      ({ id, lease }) => !this.ending.includes(lease) && this.leaseNow(id) === lease,
    );
    const chosen = runsToPutBack(others, missing, ({ id }) =>
      coding.has(this.runs.get(foldId(id))?.agent ?? ""),
    );
    if (chosen.length === 0) return;
    const free = `${bytesText(freeBytes)} of memory are free, and ${bytesText(least)} must be (free_memory_min)`;
    for (const { id, lease, bytes } of chosen) {
      const agent = this.runs.get(foldId(id))?.agent ?? "";
      const why = `it was put back with its ${bytesText(bytes)}: only ${free}`;
      const hold = { gate: MEMORY_GATE + keyOf(agent), why };
      this.host.queue.pool.workers.tellAll({ type: "interrupt", leases: [lease], hold });
      alerts.alert("memory", `${id}: ${why}`);
    }
    this.ending = [...this.ending, ...chosen.map(({ lease }) => lease)];
  }

  /** Not that of a line of a batch. */
  private leaseNow(id: string): string | undefined {
    const claim = findClaim(this.host.env.trays, id);
    return claim && leaseOf(claim.name);
  }

  /** A task whose file has left `processing/` runs no more. */
  private keepOnly(files: readonly string[]): void {
    this.isBusy = files.length > 0;
    if (this.runs.size === 0) return;
    const ids = new Set(files.map((file) => foldId(parseName(file)?.id ?? "")));
    const oldMs = this.nowMs() - START_MS;
    for (const [id, { sinceMs }] of this.runs)
      if (sinceMs < oldMs && !ids.has(id)) this.runs.delete(id);
  }

  /** The figures change with each look, so they are told from time to time only. */
  private tell(nowMs: number): void {
    const names = this.gates.flatMap(({ agents }) => agents).join();
    if (names === [...this.refused.keys()].join() && nowMs < this.tellAtMs) return;
    this.tellAtMs = nowMs + ASKED_MS;
    this.gates = [...this.refused].map(([agent, { why }]) => gateOf(agent, why));
    this.version++;
  }
}

function gateOf(agent: string, why: string): ClosedGate {
  const todo = "wait: it starts when there is room (free_memory_min)";
  return closedGate(MEMORY_GATE + keyOf(agent), `agent ${agent}: ${why}`, todo, {
    agents: [agent],
  });
}

export const memory: MakePart = (host) => new MemoryPart(host);
