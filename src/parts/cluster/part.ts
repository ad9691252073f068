/**
 * Lets only as many tasks of remote agents start as machines have room for, so that the others keep their order here. Tasks that were
 * sent stay at their gates until their results come. Without a remote agent or group in the settings it does nothing.
 */

import type { ClosedGate } from "../../core/documents.ts";
import { messageOf } from "../../core/errors.ts";
import { closes } from "../../core/gates.ts";
import { CLUSTER_GATE } from "../../core/names.ts";
import type { Lane } from "../../core/waiting-task.ts";
import type {
  Closed,
  Part,
  PartPorts,
  StartLimit,
  StatusSource,
} from "../../supervisor/environment/part.ts";
import { NEVER, type Tick } from "../../supervisor/environment/service.ts";
import type { MakePart, PartHost } from "../../supervisor/part.ts";
import type { BridgeProcess } from "./bridge-process.ts";
import { gatesOf, goesOnText } from "./gate-text.ts";
import { clusterGate, targetOf } from "./protocol/dispatch.ts";
import { restOfLook, usedMs } from "./rest.ts";
import { type BridgeDocument, BridgeReader, readBridge } from "./tree/bridge-document.ts";

/**
 * Pauses between two looks (ms). While tasks wait for room, the pause doubles with each look that finds none, from the first value
 * to the second. The third is for a tree that has no tasks on their way.
 */
const SOON_MS = 20;
const LOOK_MS = 250;
const REST_MS = 2000;
/** A started task counts until a look sees it wait for its result. It counts no longer than this: its worker may have died (ms). */
const STARTED_MS_MAX = 5000;
/** A started task whose name is not in `processing/` after this time has settled already (ms). */
const NAMED_MS_MAX = 60;

/** The part before the target in the name of each task that waits for its result. */
const HOLD = `~hold-${CLUSTER_GATE}`;

/** The tasks of one target. */
interface Target {
  agents: string[];
  groups: string[];
  maySend: number;
  /** How many tasks wait for their results. */
  sent: number;
  /** Start times of tasks that no look has seen to wait yet (monotonic ms), by id. */
  readonly startedMs: Map<string, number>;
  isFull: boolean;
}

class ClusterPart implements Part, StartLimit, StatusSource {
  readonly ports: PartPorts;
  version = 0;
  private readonly env: PartHost["env"];
  private readonly targets = new Map<string, Target>();
  /** The target of each remote agent. */
  private readonly targetOfAgent = new Map<string, string>();
  /** The target of each group that is sent, whatever the agents of its tasks are. */
  private readonly targetOfGroup: ReadonlyMap<string, string>;
  private readonly bridgeReader: BridgeReader;
  gates: readonly ClosedGate[] = [];
  private lookAtMs = 0;
  private bridgeProcess: BridgeProcess | undefined;
  /** The state of the bridge at the last look. */
  private bridge: BridgeDocument | undefined;
  /** The next pause while tasks wait for room. */
  private pauseMs = LOOK_MS;

  constructor({ env }: Pick<PartHost, "env">) {
    this.env = env;
    this.bridgeReader = new BridgeReader(env.tree.dir);
    const { agents, cluster, groups } = env.settings;
    for (const agent of agents) {
      if (agent.kind !== "remote") continue;
      const name = targetOf(agent);
      this.targetAt(name).agents.push(agent.name);
      this.targetOfAgent.set(agent.name, name);
    }
    this.targetOfGroup = new Map(Object.entries(cluster.groups));
    for (const [group, name] of this.targetOfGroup) this.targetAt(name).groups.push(group);
    // A lane has a group only if the group is known: see `laneOf`.
    const slotsOf = (group: string): number | undefined =>
      this.targetOfGroup.has(group) && !Object.hasOwn(groups, group)
        ? Number.POSITIVE_INFINITY
        : undefined;
    this.ports = {
      startLimit: this,
      status: this,
      ...(this.targetOfGroup.size > 0 ? { groups: { hasGroups: true, slotsOf } } : {}),
    };
  }

  private targetAt(name: string): Target {
    const known = this.targets.get(name);
    if (known !== undefined) return known;
    const startedMs = new Map<string, number>();
    const target = { agents: [], groups: [], maySend: 0, sent: 0, startedMs, isFull: false };
    this.targets.set(name, target);
    return target;
  }

  /** Undefined for tasks that run here. */
  private targetOf({ agent, group = "" }: Lane): string | undefined {
    return this.targetOfAgent.get(agent) ?? this.targetOfGroup.get(group);
  }

  async start(isOnePass: boolean): Promise<void> {
    if (this.targets.size > 0) this.look(performance.now());
    if (this.env.settings.cluster.bridge && !isOnePass) await this.startBridge();
  }

  work({ nowMs }: Tick): void {
    if (this.targets.size === 0 || nowMs < this.lookAtMs) return;
    const all = [...this.targets.values()];
    const before = all.map(underWay);
    const usedBeforeMs = usedMs();
    this.look(nowMs);
    const leastMs = restOfLook(usedBeforeMs);
    const hasRoom = all.some((target, at) => underWay(target) < (before[at] ?? 0));
    this.pauseMs = Math.max(leastMs, hasRoom ? SOON_MS : Math.min(2 * this.pauseMs, LOOK_MS));
    const isFull = all.some((target) => target.isFull);
    const isAtWork = all.some((target) => underWay(target) > 0);
    const wantedMs = isFull ? this.pauseMs : isAtWork ? LOOK_MS : REST_MS;
    this.lookAtMs = nowMs + Math.max(leastMs, wantedMs);
  }

  nextMs(): number {
    return this.targets.size === 0 ? NEVER : this.lookAtMs;
  }

  closed(lane: Lane): Closed | undefined {
    if (this.targets.size === 0) return undefined;
    const name = this.targetOf(lane);
    const target = name === undefined ? undefined : this.targets.get(name);
    if (name === undefined || target === undefined) return undefined;
    // A task at this gate waits for its result. A task at another gate is released, because its agent has changed.
    if (lane.gate !== clusterGate(name)) {
      target.isFull = underWay(target) >= target.maySend;
      if (!target.isFull) return undefined;
      this.lookAtMs = Math.min(this.lookAtMs, performance.now() + this.pauseMs);
    }
    return () => this.gatesAt(name, target).find((gate) => closes(gate, lane));
  }

  noteStart(lane: Lane, id: string): boolean {
    if (this.targets.size === 0) return false;
    const name = this.targetOf(lane);
    if (name !== undefined) this.targets.get(name)?.startedMs.set(id, performance.now());
    return name !== undefined;
  }

  private gatesAt(name: string, { agents, groups, sent, isFull }: Target): ClosedGate[] {
    return gatesOf({ name, agents, groups, sent, isFull, bridge: this.bridge });
  }

  goesOn(): string[] {
    if (this.targets.size === 0) return [];
    this.look(performance.now());
    const { bridge } = this;
    return [...this.targets].flatMap(
      ([name, { sent }]) => goesOnText({ name, sent, bridge }) ?? [],
    );
  }

  async finish(limitMs: number): Promise<void> {
    await this.bridgeProcess?.end(limitMs);
  }

  close(): void {
    this.bridgeProcess?.close();
  }

  private async startBridge(): Promise<void> {
    const { tree, alerts } = this.env;
    try {
      const { BridgeProcess } = await import("./bridge-process.ts");
      this.bridgeProcess = new BridgeProcess({
        stateDir: tree.dir,
        isThere: () => readBridge(tree.dir, Date.now()) !== undefined,
        tell: (line) => (isBeginning(line) ? alerts.notice(line) : alerts.report(line, line)),
      });
      this.bridgeProcess.start();
    } catch (error) {
      alerts.report("bridge", `the bridge cannot be started: ${messageOf(error)}`);
    }
  }

  private look(nowMs: number): void {
    const { alerts, trays } = this.env;
    try {
      const bridge = this.bridgeReader.read(Date.now());
      this.bridge = bridge;
      this.count(trays.storage.list(trays.processing), nowMs);
      const gates = [...this.targets].flatMap(([name, target]) => {
        target.maySend = bridge?.targets[name]?.may_be_sent ?? 0;
        return this.gatesAt(name, target);
      });
      if (JSON.stringify(gates) === JSON.stringify(this.gates)) return;
      this.gates = gates;
      this.version++;
    } catch (error) {
      alerts.report("cluster", `cannot see what the bridge does: ${messageOf(error)}`);
    }
  }

  private count(files: readonly string[], nowMs: number): void {
    for (const target of this.targets.values()) {
      target.sent = 0;
      for (const [id, atMs] of target.startedMs)
        if (nowMs - atMs > STARTED_MS_MAX) target.startedMs.delete(id);
    }
    // Thousands of tasks may be on their way, so only the needed part of each name is read.
    for (const file of files) {
      const at = file.indexOf(HOLD);
      const target = at === -1 ? undefined : this.targets.get(file.slice(at + HOLD.length, -5));
      if (target === undefined) continue;
      target.sent += 1;
      if (target.startedMs.size > 0) target.startedMs.delete(idOf(file));
    }
    this.forgetSettled(files, nowMs);
  }

  /** Forgets started tasks that waited for their results and settled between two looks. */
  private forgetSettled(files: readonly string[], nowMs: number): void {
    let ids: ReadonlySet<string> | undefined;
    for (const { startedMs } of this.targets.values())
      for (const [id, atMs] of startedMs) {
        if (nowMs - atMs <= NAMED_MS_MAX) continue;
        ids ??= new Set(files.map(idOf));
        if (!ids.has(id)) startedMs.delete(id);
      }
  }
}

/** True for the line that a bridge prints when it has begun well. */
function isBeginning(line: string): boolean {
  return line.startsWith("bridge of ");
}

function idOf(file: string): string {
  return file.slice(0, file.indexOf("@"));
}

function underWay({ sent, startedMs }: Target): number {
  return sent + startedMs.size;
}

export const cluster: MakePart = (host) => new ClusterPart(host);
