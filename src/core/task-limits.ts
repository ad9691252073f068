/**
 * The limits of tasks: groups, and limits that several groups share. The settings name them. Commands change them while the pool
 * runs; `control.json` holds these changes. Pure.
 */
import type { CallbackFields } from "./callback.ts";
import { parseRate, type Rate } from "./rate.ts";
import { suggest } from "./suggest.ts";

/** A group of tasks, which name it in `group`. */
export interface GroupSettings extends CallbackFields {
  /** How many of its tasks may be in work at once. A task of weight 2 counts as two. Left out: no limit. */
  slots?: number;
  /** The shared limits that hold for all its tasks. */
  limits?: string[];
}

/** A limit that tasks and groups name in `limits`. A bare number means `slots`. */
export interface LimitSettings {
  slots?: number;
  /** Starts of runs: `60/min`. */
  rate?: string;
  /** How many of these starts may come at once. Default: 1. */
  burst?: number;
}

/** What a command has changed. A member that is left out is as in the settings. */
export interface LimitChange extends LimitSettings {
  paused?: boolean;
}

/** The changes by commands: `group:gpu` or `limit:github` → what. */
export type LimitChanges = Readonly<Record<string, LimitChange>>;

export type LimitKind = "group" | "limit";

export function limitKey(kind: LimitKind, name: string): string {
  return `${kind}:${name}`;
}

export interface LimitSource {
  groups: Readonly<Record<string, GroupSettings>>;
  limits: Readonly<Record<string, number | LimitSettings>>;
}

/** The limits of these settings, with the changes by commands. */
export class TaskLimits {
  private readonly rates = new Map<string, Rate | undefined>();

  constructor(
    private readonly source: LimitSource,
    private readonly changes: LimitChanges = {},
  ) {}

  has(kind: LimitKind, name: string): boolean {
    return Object.hasOwn(kind === "group" ? this.source.groups : this.source.limits, name);
  }

  /** Infinity without a limit; undefined when the settings do not name it. */
  slotsOf(kind: LimitKind, name: string): number | undefined {
    const found = this.settingsOf(kind, name);
    return found === undefined ? undefined : (found.slots ?? Number.POSITIVE_INFINITY);
  }

  isPaused(group: string): boolean {
    return this.settingsOf("group", group)?.paused === true;
  }

  /** The rate of this limit, if it has one. */
  rateOf(name: string): Rate | undefined {
    if (!this.rates.has(name)) {
      const { rate, burst } = this.settingsOf("limit", name) ?? {};
      this.rates.set(name, rate === undefined ? undefined : parseRate(rate, burst));
    }
    return this.rates.get(name);
  }

  /** The shared limits of a task: its own, and those of its group. */
  namesOf(group: string | undefined, own: readonly string[] = []): readonly string[] {
    const ofGroup = group === undefined ? undefined : this.groupOf(group)?.limits;
    return ofGroup === undefined || ofGroup.length === 0 ? own : [...new Set([...own, ...ofGroup])];
  }

  /** The values in force; undefined when the settings do not name it. */
  settingsOf(kind: LimitKind, name: string): LimitChange | undefined {
    const own = kind === "group" ? this.groupOf(name) : this.limitOf(name);
    return own && { ...own, ...this.changeOf(kind, name) };
  }

  /** Undefined when no command has changed it. */
  changeOf(kind: LimitKind, name: string): LimitChange | undefined {
    const key = limitKey(kind, name);
    return Object.hasOwn(this.changes, key) ? this.changes[key] : undefined;
  }

  private groupOf(name: string): GroupSettings | undefined {
    const { groups } = this.source;
    return Object.hasOwn(groups, name) ? groups[name] : undefined;
  }

  private limitOf(name: string): LimitSettings | undefined {
    const { limits } = this.source;
    const found = Object.hasOwn(limits, name) ? limits[name] : undefined;
    return typeof found === "number" ? { slots: found } : found;
  }
}

/** The first fault of these settings; undefined when they are good. */
export function explainBadLimits({ groups, limits }: LimitSource): string | undefined {
  for (const [name, limit] of Object.entries(limits)) {
    if (typeof limit === "number") continue;
    if (limit.slots === undefined && limit.rate === undefined)
      return `limits.${name} needs slots or a rate`;
    if (limit.burst !== undefined && limit.rate === undefined)
      return `limits.${name}: burst belongs to a rate`;
  }
  for (const [name, group] of Object.entries(groups))
    for (const limit of group.limits ?? [])
      if (!Object.hasOwn(limits, limit))
        return `groups.${name}.limits: ${limit} is not among the limits`;
  return undefined;
}

/** The known group that was perhaps meant by the name of a group that the settings do not have. */
export function nearGroup(
  group: string,
  { groups, cluster }: { groups: object; cluster: { groups: object } },
): string | undefined {
  const known = [...Object.keys(groups), ...Object.keys(cluster.groups)];
  return known.includes(group) ? undefined : suggest(group, known);
}
