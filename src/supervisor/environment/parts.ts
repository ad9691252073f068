/** Combines the parts of a supervisor: services ask this class without knowing which parts there are. */

import type { ClosedGate } from "../../core/documents.ts";
import { chooseAgent, closedGate, closes, lanesOf } from "../../core/gates.ts";
import type { DependencyState } from "../../core/unmet.ts";
import { type Lane, readLane } from "../../core/waiting-task.ts";
import type {
  Closed,
  DependencySource,
  Gates,
  GroupSource,
  Part,
  StartLimit,
  StatusSource,
  TaskSource,
  Unlanded,
  WorkSource,
} from "./part.ts";
import { NEVER, type Service, type Tick } from "./service.ts";

const NONE: Unlanded = new Map();
/** Stands for a gate that its part does not describe. */
const CLOSED = closedGate("", "", "");

export class Parts implements Service, Gates {
  private readonly list: Part[] = [];
  private readonly tasks: TaskSource[] = [];
  private readonly works: WorkSource[] = [];
  private readonly dependencies: DependencySource[] = [];
  private readonly limits: StartLimit[] = [];
  private readonly groups: GroupSource[] = [];
  readonly statuses: StatusSource[] = [];
  /** True once the `start` of all parts has resolved. */
  isStarted = false;
  readonly started: Promise<void>;
  private tellStarted: () => void = () => {};

  constructor() {
    this.started = new Promise((resolve) => {
      this.tellStarted = resolve;
    });
  }

  /** Call before `start`. */
  add(part: Part): void {
    const { tasks, work, dependencies, startLimit, groups, status } = part.ports ?? {};
    this.list.push(part);
    if (tasks !== undefined) this.tasks.push(tasks);
    if (work !== undefined) this.works.push(work);
    if (dependencies !== undefined) this.dependencies.push(dependencies);
    if (startLimit !== undefined) this.limits.push(startLimit);
    if (groups !== undefined) this.groups.push(groups);
    if (status !== undefined) this.statuses.push(status);
  }

  async start(isOnePass: boolean): Promise<void> {
    await Promise.all(this.list.map(async (part) => part.start?.(isOnePass)));
    this.isStarted = true;
    this.tellStarted();
  }

  async finish(limitMs: number): Promise<void> {
    await Promise.all(this.list.map(async (part) => part.finish?.(limitMs)));
  }

  close(): void {
    for (const part of this.list) part.close?.();
  }

  work(tick: Tick): void {
    for (const part of this.list) part.work?.(tick);
  }

  stop(): void {
    for (const part of this.list) part.stop?.();
  }

  nextMs(nowMs: number): number {
    return this.list.reduce(
      (soonest, part) => Math.min(soonest, part.nextMs?.(nowMs) ?? NEVER),
      NEVER,
    );
  }

  /** The part that would make a task with this id; undefined for a plain task. */
  ownerOf(id: string): TaskSource | undefined {
    return this.tasks.find((tasks) => tasks.isOwn(id));
  }

  /** See `TaskSource.unbegun`. */
  unbegun(): string[] {
    return this.tasks.flatMap((tasks) => tasks.unbegun());
  }

  /** Returns a function that says whether a part knows an id; undefined when that cannot be said now, or no such part exists. */
  membership(): ((id: string) => boolean) | undefined {
    const all = this.tasks.map((tasks) => tasks.membership());
    if (all.length === 0 || all.includes(undefined)) return undefined;
    return (id) => all.some((isMember) => isMember?.(id));
  }

  /** False if one part does not count it as done, such as a node whose work has not landed. Undefined when no part knows the id. */
  isDone(id: string): boolean | undefined {
    let isKnown: true | undefined;
    for (const dependencies of this.dependencies) {
      const isDone = dependencies.isDone(id);
      if (isDone === false) return false;
      isKnown ??= isDone;
    }
    return isKnown;
  }

  /** See `DependencySource`. The first part that knows the id answers. */
  hasEnded(id: string): boolean | undefined {
    for (const dependencies of this.dependencies) {
      const hasEnded = dependencies.hasEnded?.(id);
      if (hasEnded !== undefined) return hasEnded;
    }
    return undefined;
  }

  /** The first standing that is not met counts. Undefined when no part knows the id. */
  standing(id: string): DependencyState | undefined {
    let met: DependencyState | undefined;
    for (const dependencies of this.dependencies) {
      const standing = dependencies.standing(id);
      if (standing !== undefined && standing.is !== "met") return standing;
      met ??= standing;
    }
    return met;
  }

  /** See `DependencySource`. At most one part has such tasks. */
  unlanded(): Unlanded {
    for (const dependencies of this.dependencies) {
      const unlanded = dependencies.unlanded?.();
      if (unlanded !== undefined) return unlanded;
    }
    return NONE;
  }

  /** See `StartLimit`. At most one part makes plans. */
  replan(): readonly string[] | undefined {
    for (const limit of this.limits) {
      const ids = limit.replan?.();
      if (ids !== undefined) return ids;
    }
    return undefined;
  }

  readonly mayStart = (lane: string): boolean => this.closed(lane) === undefined;

  /** The first gate that holds back the tasks of this lane. */
  closed(lane: string): Closed | undefined {
    if (this.limits.length === 0) return undefined;
    const of = readLane(lane);
    if (of.fallbacks.length > 0) {
      const { gate } = this.choose(of);
      return gate && (() => gate);
    }
    for (const limit of this.limits) {
      const closed = closedAt(limit, of);
      if (closed !== undefined) return closed;
    }
    return undefined;
  }

  private choose(lane: Lane): ReturnType<typeof chooseAgent> {
    const gatesAt = (one: Lane): ClosedGate[] =>
      this.limits.flatMap((limit) => {
        const closed = closedAt(limit, one);
        return closed === undefined ? [] : (closed() ?? CLOSED);
      });
    return chooseAgent(lane, gatesAt, Date.now());
  }

  /** The lane with the agent that runs its tasks now. */
  private laneNow(lane: string): Lane {
    const of = readLane(lane);
    return of.fallbacks.length === 0 ? of : this.choose(of).lane;
  }

  agentFor(lane: string): string {
    return this.laneNow(lane).agent;
  }

  /** Why no task of this lane starts as long as this supervisor runs, and what to do; undefined when one may. */
  whyClosed(lane: string): string | undefined {
    const shut = lanesOf(readLane(lane)).map((one) =>
      this.limits.map((limit) => closedAt(limit, one)?.()).find((gate) => gate?.is_shut === true),
    );
    const [first] = shut;
    if (first === undefined || shut.includes(undefined)) return undefined;
    // The gate of a group, an agent or a limit says itself what to do.
    return first.places === true ? first.why : `${first.why} (${first.do})`;
  }

  /** All closed gates. */
  get gates(): ClosedGate[] {
    return this.limits.flatMap((limit) => limit.gates ?? []);
  }

  noteStart(lane: string, id: string): boolean {
    const of = this.laneNow(lane);
    let isCounted = false;
    for (const limit of this.limits) if (limit.noteStart?.(of, id) === true) isCounted = true;
    return isCounted;
  }

  /** See `GroupSource`. The first part that knows the group answers. */
  slotsOf(group: string): number | undefined {
    for (const source of this.groups) {
      const slots = source.slotsOf(group);
      if (slots !== undefined) return slots;
    }
    return undefined;
  }

  get hasGroups(): boolean {
    return this.groups.some((source) => source.hasGroups);
  }

  canStart(): boolean {
    return this.works.some((work) => work.canStart());
  }

  isBusy(): boolean {
    return this.works.some((work) => work.isBusy());
  }

  isIdle(): boolean {
    return this.works.every((work) => work.isIdle());
  }

  /** True if no other part has work in progress, or will start any by itself. Resolves when the parts have started. */
  async isIdleBut(own: WorkSource): Promise<boolean> {
    await this.started;
    return this.works.every((work) => work === own || work.isIdle());
  }
}

function closedAt(limit: StartLimit, lane: Lane): Closed | undefined {
  if (limit.closed !== undefined) return limit.closed(lane);
  const gate = limit.gates?.find((one) => closes(one, lane) && limit.mayPass?.(lane, one) !== true);
  return gate && (() => gate);
}
