/**
 * Limits how many tasks of a group, an agent or a shared limit are in work at once, and how often they start. Keeps tasks apart
 * that own the same files. A task has its places from its acceptance until its name leaves `processing/`, also while it waits there
 * for its next run. So no limit is exceeded, whichever process claims it then. The names in `processing/` are the truth, so a new
 * supervisor counts the same. Rates are in files of their own, which workers charge.
 */
import { matchChosen } from "../../agents/chosen-agent.ts";
import { decodeTask } from "../../codec/task-codec.ts";
import type { ClosedGate } from "../../core/documents.ts";
import { messageOf, systemCode } from "../../core/errors.ts";
import { TASK_BYTES_MAX } from "../../core/limits.ts";
import { BATCH_AGENT } from "../../core/matching.ts";
import { foldId, parseName, parsePlainClaim, takesPlaces } from "../../core/names.ts";
import type { Rate } from "../../core/rate.ts";
import { type LimitChanges, type LimitKind, limitKey, TaskLimits } from "../../core/task-limits.ts";
import {
  type Lane,
  laneOf,
  limitsOf,
  readLane,
  readNeeds,
  type WaitingTask,
} from "../../core/waiting-task.ts";
import { systemBucketClock } from "../../host/rate-bucket.ts";
import { pathIn } from "../../mailbox/files/trays.ts";
import type {
  Closed,
  Part,
  PartPorts,
  PartReport,
  StartLimit,
  StatusSource,
} from "../../supervisor/environment/part.ts";
import { NEVER, type Tick } from "../../supervisor/environment/service.ts";
import type { MakePart, PartHost } from "../../supervisor/part.ts";
import { type Fault, faultOf, gateOf, type LimitState, rateGate } from "./gates.ts";
import { Ownership } from "./ownership.ts";
import { type Limited, type Place, Places } from "./places.ts";
import { RateWatch } from "./rate-watch.ts";
import { reservedTasks } from "./reserved.ts";
import { setLimit } from "./set-limit.ts";

type Host = Pick<PartHost, "env" | "limits" | "queue" | "control" | "commands">;

/** The places that a task in `processing/` takes, and the files that it owns. */
type Taken = Place & { owns?: string | undefined };

/** The status shows a new time of a used-up rate only when it differs by more than this (ms). */
const TELL_RATE_MS = 1000;

class GroupsPart implements Part, StartLimit, StatusSource, LimitState {
  readonly ports: PartPorts;
  version = 0;
  private readonly ownership: Ownership;
  /** True after a waiting task that owns files has been seen. */
  private hasOwners = false;
  private readonly places: Places;
  /** The slots of each agent that has a limit, by its name. */
  private readonly agentSlots = new Map<string, number>();
  limits: TaskLimits;
  private changes: LimitChanges;
  private readonly rates = new Map<string, RateWatch>();
  /** When each used-up rate allows its next start (monotonic ms), by the name of its limit. */
  private readonly usedUp = new Map<string, number>();
  private toldRates = new Map<string, number>();
  /** The earliest next start of the rates that held a task back in this tick (monotonic ms). */
  private wakeMs = NEVER;
  /** Limits that tasks name and the settings do not have. */
  private readonly unknown = new Set<string>();
  /** The heavy task of a group for which all others of the group wait, by group. */
  private reserved: ReadonlyMap<string, WaitingTask> = new Map();
  private absentOnce = new Set<string>();
  /** False until a listing of `processing/` has shown all that runs. */
  private isListed = false;

  constructor(private readonly host: Host) {
    const { settings, facts, tree } = host.env;
    this.ownership = new Ownership(tree.dir);
    this.places = new Places(
      (limited) => this.slotsOf(limited),
      () => void this.version++,
    );
    for (const { name, slots } of settings.agents)
      if (slots !== undefined) this.agentSlots.set(name, slots);
    this.changes = host.control.current.limit_changes;
    this.limits = new TaskLimits(settings, this.changes);
    const hasOwn = Object.keys(settings.groups).length + Object.keys(settings.limits).length > 0;
    const slotsOf = (group: string): number | undefined => this.limits.slotsOf("group", group);
    this.ports = {
      startLimit: this,
      status: this,
      ...(hasOwn ? { groups: { hasGroups: true, slotsOf } } : {}),
    };
    host.commands.set("set-limit", setLimit);
    facts.on("processing:listed", (files) => this.take(files));
    facts.on("task:settled", (id) => this.leave(id));
  }

  /** Applies changes made by commands. Decides which heavy tasks and which tasks that own files may start in this tick. */
  work({ nowMs }: Tick): void {
    this.takeChanges();
    this.tellRates(nowMs);
    this.wakeMs = NEVER;
    const { backlog } = this.host.queue;
    const owners = backlog.ownerCount === 0 ? [] : backlog.owners();
    if (owners.length > 0 && !this.hasOwners) {
      const wasUsed = this.isUsed;
      this.hasOwners = true;
      // Without limits the running tasks were not counted so far.
      if (!wasUsed) this.take(this.list());
    }
    if (this.hasOwners) {
      const heads = this.isListed ? owners : [];
      // The lanes of owners are asked about below, without a reserved group.
      this.reserved = new Map();
      if (this.ownership.decide(heads, this.host.limits.parts.mayStart)) this.version++;
    }
    this.reserve();
  }

  /** Lets the first heavy task of a group that does not fit yet wait for its room, and the others of the group for that task. */
  private reserve(): void {
    const { backlog } = this.host.queue;
    const ids = (): string => [...this.reserved.values()].map(({ id }) => id).join();
    const before = ids();
    this.reserved = new Map();
    if (backlog.heavyCount > 0 && this.isListed)
      this.reserved = reservedTasks(
        backlog.heads(),
        (lane) => this.isOpen(readLane(lane)),
        (name, weight) => this.places.hasRoom({ kind: "group", name }, weight),
      );
    if (ids() !== before) this.version++;
  }

  /** When a used-up rate allows the next start (monotonic ms). */
  nextMs(): number {
    return this.wakeMs;
  }

  closed(lane: Lane): Closed | undefined {
    const { group, owns, limits } = lane;
    if (lane.hasPlaces) return this.closedForAgent(lane);
    if (!this.isUsed && owns === undefined && limits.length === 0) return undefined;
    const full = this.faultAt(lane);
    if (full !== undefined) return () => gateOf(...full, this);
    if (owns !== undefined && !this.ownership.mayStart(owns))
      return () => this.ownership.gateOf(owns);
    const rate = this.usedUpRate(this.limits.namesOf(group, limits));
    return rate === undefined ? undefined : () => this.rateGateOf(rate, this.usedUp);
  }

  /** A task in work has its places. But another agent that takes it over needs a free slot, and one without slots runs nothing. */
  private closedForAgent({ agent: name, fallbacks }: Lane): Closed | undefined {
    if (fallbacks.length === 0 || !this.agentSlots.has(name)) return undefined;
    const one: Limited = { kind: "agent", name };
    const fault = faultOf(one, this);
    const isOwn = !fallbacks.includes(name);
    return fault === undefined || (isOwn && fault === "full")
      ? undefined
      : () => gateOf(one, fault, this);
  }

  noteStart(lane: Lane, id: string): boolean {
    if (lane.hasPlaces && lane.fallbacks.includes(lane.agent))
      this.places.giveToAgent(id, lane.agent);
    if (!this.isUsed || lane.hasPlaces) return false;
    const limited = this.limitedBy(lane);
    this.enter({ id, limited, weight: lane.weight, owns: lane.owns });
    for (const { kind, name } of limited) {
      const rate = kind === "limit" ? this.limits.rateOf(name) : undefined;
      if (rate !== undefined) this.watch(name).noteStart(rate);
    }
    return true;
  }

  /** Every group, agent and limit that is full, paused, used up or unknown. */
  get gates(): readonly ClosedGate[] {
    const { groups, limits } = this.host.env.settings;
    const of = (kind: Limited["kind"], names: Iterable<string>): Limited[] =>
      [...new Set(names)].map((name) => ({ kind, name }));
    const all = [
      ...of("group", [...Object.keys(groups), ...this.places.namesOf("group")]),
      ...of("agent", this.agentSlots.keys()),
      ...of("limit", [...Object.keys(limits), ...this.unknown]),
    ];
    return [...all.flatMap((one) => this.gateAt(one) ?? []), ...this.ownership.report()];
  }

  report(): PartReport {
    const { groups, limits } = this.host.env.settings;
    const counts: NonNullable<PartReport["limits"]> = {};
    const begin = (kind: LimitKind, name: string): void => {
      counts[limitKey(kind, name)] = { waiting: 0, in_work: this.countOf({ kind, name }) };
    };
    for (const name of Object.keys(groups)) begin("group", name);
    for (const name of Object.keys(limits)) begin("limit", name);
    for (const { group, limits: own, count } of this.host.queue.backlog.limited()) {
      const shared = this.limits.namesOf(group, own).map((name) => limitKey("limit", name));
      for (const key of [limitKey("group", group), ...shared]) {
        const one = counts[key];
        if (one !== undefined) one.waiting += count;
      }
    }
    return { limits: counts };
  }

  private gateAt(one: Limited): ClosedGate | undefined {
    const isReserved = one.kind === "group" && this.reserved.has(one.name);
    const fault = isReserved ? "full" : faultOf(one, this);
    // Before the first listing it is not known what is full.
    if (fault !== undefined && (fault !== "full" || this.isListed)) return gateOf(one, fault, this);
    return one.kind === "limit" ? this.rateGateOf(one.name, this.toldRates) : undefined;
  }

  private takeChanges(): void {
    const { limit_changes: changes } = this.host.control.current;
    if (changes === this.changes) return;
    this.changes = changes;
    this.limits = new TaskLimits(this.host.env.settings, changes);
    this.version++;
  }

  /** Whether a task of this lane may start, apart from the room in its group and the files that it owns. */
  private isOpen(lane: Lane): boolean {
    if (this.faultAt(lane, false) !== undefined) return false;
    return this.usedUpRate(this.limits.namesOf(lane.group, lane.limits)) === undefined;
  }

  /** What holds this lane back. What only a person can open comes first. @param isRoomAsked false: the room in its group does not count */
  private faultAt(lane: Lane, isRoomAsked = true): [Limited, Fault] | undefined {
    let full: [Limited, Fault] | undefined;
    for (const one of this.limitedBy(lane)) {
      const isGroup = one.kind === "group";
      const first = isGroup ? this.reserved.get(one.name) : undefined;
      const isBehind = first !== undefined && laneOf(first) !== lane.key;
      const fault =
        faultOf(one, this, isGroup ? lane.weight : 1) ?? (isBehind ? "full" : undefined);
      if (fault === undefined || (fault === "full" && isGroup && !isRoomAsked)) continue;
      if (fault === "unknown") this.noteUnknown(one.name);
      if (fault !== "full") return [one, fault];
      full ??= [one, fault];
    }
    return full;
  }

  private noteUnknown(name: string): void {
    if (this.unknown.has(name) || this.unknown.size >= UNKNOWN_MAX) return;
    this.unknown.add(name);
    this.version++;
  }

  /** The first of these limits whose rate is used up. It is asked last, because it is noted as the reason why a task waits. */
  private usedUpRate(names: readonly string[]): string | undefined {
    return names.find((name) => !this.allows(name));
  }

  private allows(name: string): boolean {
    const rate = this.limits.rateOf(name);
    if (rate === undefined) return true;
    const waitMs = this.waitMs(name, rate);
    if (waitMs === 0) return true;
    const atMs = this.host.env.trays.clock.monotonicMs() + waitMs;
    this.usedUp.set(name, atMs);
    this.wakeMs = Math.min(this.wakeMs, atMs);
    return false;
  }

  private waitMs(name: string, rate: Rate): number {
    try {
      return this.watch(name).waitMs(rate);
    } catch (error) {
      const { alerts } = this.host.env;
      alerts.report(`rate:${name}`, `cannot read the rate of limit ${name}: ${messageOf(error)}`);
      return TELL_RATE_MS;
    }
  }

  private watch(name: string): RateWatch {
    let watch = this.rates.get(name);
    if (watch === undefined) {
      watch = new RateWatch(this.host.env.tree.limits, name, systemBucketClock());
      this.rates.set(name, watch);
    }
    return watch;
  }

  /** Reports the next start of used-up rates, but not each of many starts. @param nowMs monotonic */
  private tellRates(nowMs: number): void {
    for (const [name, atMs] of this.usedUp)
      if (nowMs > atMs + TELL_RATE_MS) this.usedUp.delete(name);
    const { toldRates: told, usedUp } = this;
    const isNews =
      usedUp.size !== told.size ||
      [...usedUp].some(([name, ms]) => Math.abs((told.get(name) ?? 0) - ms) > TELL_RATE_MS);
    if (!isNews) return;
    this.toldRates = new Map(usedUp);
    this.version++;
  }

  /** @param times when each used-up rate allows its next start (monotonic ms) */
  private rateGateOf(name: string, times: ReadonlyMap<string, number>): ClosedGate | undefined {
    const rate = this.limits.rateOf(name);
    const atMs = times.get(name);
    if (rate === undefined || atMs === undefined) return undefined;
    const { clock } = this.host.env.trays;
    const wallMs = clock.wallMs() + Math.max(0, atMs - clock.monotonicMs());
    return rateGate(name, rate, wallMs, this.groupsUnder(name));
  }

  groupsUnder(limit: string): string[] {
    return Object.entries(this.host.env.settings.groups)
      .filter(([, { limits = [] }]) => limits.includes(limit))
      .map(([group]) => group);
  }

  firstOf(group: string): WaitingTask | undefined {
    return this.reserved.get(group);
  }

  countOf(limited: Limited): number {
    return this.places.countOf(limited);
  }

  slotsOf({ kind, name }: Limited): number | undefined {
    if (kind === "agent") return this.agentSlots.get(name);
    // Other parts may add groups.
    return kind === "group"
      ? this.host.limits.parts.slotsOf(name)
      : this.limits.slotsOf("limit", name);
  }

  private limitedBy({ agent, group, limits }: Pick<Lane, "agent" | "group" | "limits">): Limited[] {
    const limited: Limited[] = this.limits
      .namesOf(group, limits)
      .map((name) => ({ kind: "limit", name }));
    if (group !== undefined) limited.push({ kind: "group", name: group });
    if (this.agentSlots.has(agent)) limited.push({ kind: "agent", name: agent });
    return limited;
  }

  /** False when there is no limit, so nothing needs to be counted. */
  private get isUsed(): boolean {
    return this.hasOwners || this.agentSlots.size > 0 || this.host.limits.parts.hasGroups;
  }

  hasRoom(limited: Limited, weight: number): boolean {
    const slots = this.slotsOf(limited) ?? Number.POSITIVE_INFINITY;
    return (
      slots === Number.POSITIVE_INFINITY || (this.isListed && this.places.hasRoom(limited, weight))
    );
  }

  /** Takes over a listing of `processing/`. It lists twice at first, because one listing may miss a name that is being renamed. */
  private take(listed: readonly string[]): void {
    if (!this.isUsed) return;
    const files = this.isListed ? listed : [...listed, ...this.list()];
    const present = this.keysIn(files);
    let isWhole = true;
    for (const file of present.values()) {
      const id = parseName(file)?.id ?? parsePlainClaim(file);
      if (id === undefined || this.places.has(id)) continue;
      const place = parseName(file)?.isBatch === true ? this.batch(id) : this.placeOf(file, id);
      if (place === undefined) isWhole = false;
      else this.enter(place);
    }
    // A file that was renamed before it was read may run. So nothing limited starts before the next listing shows its places.
    this.isListed = isWhole;
    if (!isWhole) this.host.env.facts.emit("processing:changed");
    this.leaveAbsent(present);
  }

  private leaveAbsent(present: ReadonlyMap<string, string>): void {
    const absent = new Set([...this.places.ids()].filter((key) => !present.has(key)));
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
      if (id !== undefined && (name === undefined || takesPlaces(name))) keys.set(foldId(id), file);
    }
    return keys;
  }

  private batch(id: string): Taken {
    return { id, limited: this.limitedBy({ agent: BATCH_AGENT, limits: [] }), weight: 1 };
  }

  /** Undefined when the file has just left. A file that is no task takes no places. */
  private placeOf(file: string, id: string): Taken | undefined {
    const { trays, settings, tree } = this.host.env;
    const none: Taken = { id, limited: [], weight: 1 };
    try {
      const { bytes } = trays.storage.read(pathIn(trays.processing, file), TASK_BYTES_MAX);
      if (bytes === undefined) return none;
      const { task } = decodeTask(bytes, id);
      const agent = matchChosen(tree.sessions, task, settings.agents).agent?.name ?? "";
      const { group, owns, needs } = limitsOf(task);
      const { weight, limits } = readNeeds(needs);
      return {
        id,
        limited: this.limitedBy({ agent, limits, ...(group && { group }) }),
        weight,
        owns,
      };
    } catch (error) {
      return systemCode(error) === "ENOENT" ? undefined : none;
    }
  }

  private enter({ owns, ...place }: Taken): void {
    this.leave(place.id);
    if (owns !== undefined) this.ownership.enter(foldId(place.id), place.id, owns);
    this.places.enter(place);
  }

  private leave(id: string): void {
    if (!this.places.leave(id)) return;
    this.ownership.leave(foldId(id));
    this.absentOnce.delete(foldId(id));
  }
}

/** At most this many unknown limits are reported. */
const UNKNOWN_MAX = 50;

export const groups: MakePart = (host) => new GroupsPart(host);
