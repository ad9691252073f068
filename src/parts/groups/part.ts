/**
 * Limits how many tasks of a group, and of an agent, are in work at once, and keeps tasks apart that own the same files. A task has its place from its acceptance until its name has left
 * `processing/`, also while it waits there for its next run: whatever process claims it then, no limit is passed. The names in
 * `processing/` are the truth, so a new supervisor counts the same.
 */
import { decodeTask } from "../../codec/task-codec.ts";
import type { ClosedGate } from "../../core/documents.ts";
import { systemCode } from "../../core/errors.ts";
import { TASK_BYTES_MAX } from "../../core/limits.ts";
import { BATCH_AGENT, closedText, matchAgent } from "../../core/matching.ts";
import { foldId, parseName, parsePlainClaim } from "../../core/names.ts";
import { limitsOf, readLane } from "../../core/waiting-task.ts";
import { pathIn } from "../../mailbox/trays.ts";
import type {
  Part,
  PartPorts,
  PartReport,
  StartLimit,
  StatusSource,
} from "../../supervisor/environment/part.ts";
import { NEVER } from "../../supervisor/environment/service.ts";
import type { MakePart, PartHost } from "../../supervisor/part.ts";
import { Ownership } from "./ownership.ts";

/** What a task in `processing/` counts for. */
interface Place {
  group: string;
  agent: string;
  owns?: string | undefined;
}

type Host = Pick<PartHost, "env" | "limits" | "queue">;

class GroupsPart implements Part, StartLimit, StatusSource {
  readonly ports: PartPorts;
  version = 0;
  private readonly host: Host;
  private readonly ownership: Ownership;
  /** A task that owns files has been seen. */
  private hasOwners = false;
  /** The tasks in `processing/`, by folded id. */
  private readonly places = new Map<string, Place>();
  private readonly groups = new Map<string, number>();
  private readonly agents = new Map<string, number>();
  /** Of the agents that have a limit. */
  private readonly agentSlots = new Map<string, number>();
  private absentOnce = new Set<string>();
  /** Before the first listing it is not known what runs. */
  private isListed = false;

  constructor(host: Host) {
    this.host = host;
    this.ownership = new Ownership(host.env.tree.dir);
    const { agents, groups: own } = host.env.settings;
    for (const { name, slots } of agents) if (slots !== undefined) this.agentSlots.set(name, slots);
    const slotsOf = (group: string): number | undefined =>
      Object.hasOwn(own, group) ? own[group]?.slots : undefined;
    const hasOwn = Object.keys(own).length > 0;
    this.ports = {
      startLimit: this,
      status: this,
      ...(hasOwn ? { groups: { hasGroups: true, slotsOf } } : {}),
    };
    const { facts } = host.env;
    facts.on("processing:listed", (files) => this.take(files));
    facts.on("task:settled", (id) => this.leave(foldId(id)));
  }

  async start(): Promise<void> {}
  async finish(): Promise<void> {}
  close(): void {}

  /** Decides which tasks that own files may start in this tick. */
  work(): void {
    const { backlog } = this.host.queue;
    const owners = backlog.ownerCount === 0 ? [] : backlog.owners();
    if (owners.length > 0 && !this.hasOwners) {
      const wasUsed = this.isUsed;
      this.hasOwners = true;
      // What runs is not known yet.
      if (!wasUsed) this.take(this.list());
    }
    if (!this.hasOwners) return;
    const heads = this.isListed ? owners : [];
    if (this.ownership.decide(heads, this.host.limits.groups.mayStart)) this.version++;
  }

  nextMs(): number {
    return NEVER;
  }

  mayStart(lane: string): boolean {
    if (!this.isUsed) return lane.indexOf("\u0000") === -1 || readLane(lane).owns === undefined;
    const { agent, group, owns, hasPlaces } = readLane(lane);
    if (hasPlaces) return true;
    if (owns !== undefined && !this.ownership.mayStart(owns)) return false;
    const groupSlots = group === undefined ? undefined : this.slotsOf(group);
    return (
      this.hasRoom(this.groups.get(group ?? ""), groupSlots) &&
      this.hasRoom(this.agents.get(agent), this.agentSlots.get(agent))
    );
  }

  whyClosed(lane: string): string | undefined {
    const { agent, group, hasPlaces } = readLane(lane);
    if (hasPlaces) return undefined;
    if (group !== undefined && this.slotsOf(group) === 0) return closedText("group", group);
    return this.agentSlots.get(agent) === 0 ? closedText("agent", agent) : undefined;
  }

  noteStart(lane: string, id: string): void {
    if (!this.isUsed) return;
    const { agent, group = "", owns, hasPlaces } = readLane(lane);
    if (!hasPlaces) this.enter(foldId(id), id, { group, agent, owns });
  }

  /** The groups and agents that are full. */
  report(): PartReport {
    const { groups } = this.host.env.settings;
    const gates: ClosedGate[] = [
      ...new Set([...Object.keys(groups), ...this.groups.keys()]),
    ].flatMap((group) => {
      const full = explainFull("group", group, this.groups.get(group), this.slotsOf(group));
      return full === undefined ? [] : [{ ...full, agents: [], group }];
    });
    for (const [agent, slots] of this.agentSlots) {
      const full = explainFull("agent", agent, this.agents.get(agent), slots);
      if (full !== undefined) gates.push({ ...full, agents: [agent] });
    }
    return { gates: [...gates, ...this.ownership.report()] };
  }

  private slotsOf(group: string): number | undefined {
    return this.host.limits.groups.slotsOf(group);
  }

  /** Without any limit there is nothing to count. */
  private get isUsed(): boolean {
    return this.hasOwners || this.agentSlots.size > 0 || this.host.limits.groups.hasGroups;
  }

  private hasRoom(count = 0, slots = Number.POSITIVE_INFINITY): boolean {
    return slots === Number.POSITIVE_INFINITY || (this.isListed && count < slots);
  }

  /** Takes over a listing of `processing/`. The first one is made twice: a listing may miss a name that is being renamed. */
  private take(listed: readonly string[]): void {
    if (!this.isUsed) return;
    const files = this.isListed ? listed : [...listed, ...this.list()];
    const present = this.keysIn(files);
    let isWhole = true;
    for (const [key, file] of present) {
      const id = parseName(file)?.id ?? parsePlainClaim(file);
      if (id === undefined || this.places.has(key)) continue;
      const place = parseName(file)?.isBatch === true ? BATCH : this.placeOf(file, id);
      if (place === undefined) isWhole = false;
      else this.enter(key, id, place);
    }
    // A file that was renamed before it was read may run: nothing limited starts before the next listing shows what it is.
    this.isListed = isWhole;
    if (!isWhole) this.host.env.facts.emit("processing:changed");
    this.leaveAbsent(present);
  }

  private leaveAbsent(present: ReadonlyMap<string, string>): void {
    const absent = new Set([...this.places.keys()].filter((key) => !present.has(key)));
    const gone = [...absent].filter((key) => this.absentOnce.has(key));
    const now = gone.length > 0 ? this.keysIn(this.list()) : present;
    for (const key of gone) if (!now.has(key)) this.leave(key);
    this.absentOnce = absent;
  }

  private list(): string[] {
    const { trays } = this.host.env;
    try {
      return trays.storage.list(trays.processing);
    } catch (error) {
      if (systemCode(error) === "ENOENT") return [];
      throw error;
    }
  }

  /** The files of tasks that have a place, by folded id. */
  private keysIn(files: readonly string[]): Map<string, string> {
    const keys = new Map<string, string>();
    for (const file of files) {
      const name = parseName(file);
      const id = name?.id ?? parsePlainClaim(file);
      const isAway = name?.stage === "hold" || name?.stage === "bad" || name?.stage === "again";
      if (id !== undefined && !isAway) keys.set(foldId(id), file);
    }
    return keys;
  }

  /** Undefined when the file has just left. What is no task counts for nothing. */
  private placeOf(file: string, id: string): Place | undefined {
    const { trays, settings } = this.host.env;
    try {
      const { bytes } = trays.storage.read(pathIn(trays.processing, file), TASK_BYTES_MAX);
      if (bytes === undefined) return NONE;
      const { task } = decodeTask(bytes, id);
      const { agent } = matchAgent(task, settings.agents);
      return { ...limitsOf(task), group: task.group ?? "", agent: agent?.name ?? "" };
    } catch (error) {
      return systemCode(error) === "ENOENT" ? undefined : NONE;
    }
  }

  /** What has no limit is not counted, but its name is kept, so that its file is read once only. */
  private enter(key: string, id: string, { group, agent, owns }: Place): void {
    this.leave(key);
    if (owns !== undefined) this.ownership.enter(key, id, owns);
    const place = {
      group: group !== "" && this.slotsOf(group) !== undefined ? group : "",
      agent: this.agentSlots.has(agent) ? agent : "",
    };
    this.places.set(key, place);
    this.count(place, 1);
  }

  private leave(key: string): void {
    const place = this.places.get(key);
    if (place === undefined) return;
    this.places.delete(key);
    this.ownership.leave(key);
    this.absentOnce.delete(key);
    this.count(place, -1);
  }

  private count({ group, agent }: Place, more: 1 | -1): void {
    if (group !== "") this.countOne(this.groups, group, more, this.slotsOf(group));
    if (agent !== "") this.countOne(this.agents, agent, more, this.agentSlots.get(agent));
  }

  private countOne(counts: Map<string, number>, name: string, more: 1 | -1, slots = 0): void {
    const before = counts.get(name) ?? 0;
    const count = before + more;
    if (count > 0) counts.set(name, count);
    else counts.delete(name);
    // People read about full ones only.
    if (Math.max(before, count) >= slots) this.version++;
  }
}

const NONE: Place = { group: "", agent: "" };
const BATCH: Place = { group: "", agent: BATCH_AGENT };

/** Undefined while there is a place. */
function explainFull(
  kind: "group" | "agent",
  name: string,
  count = 0,
  slots = Number.POSITIVE_INFINITY,
): Omit<ClosedGate, "agents"> | undefined {
  if (count < slots) return undefined;
  const todo = slots === 0 ? `give it slots in config.yaml (${kind}s)` : "wait";
  const why = `${kind} ${name}: ${count} of ${slots} running`;
  return { gate: `${kind}-${name}`, until_ms: 0, why, do: todo };
}

export const groups: MakePart = (host) => new GroupsPart(host);
