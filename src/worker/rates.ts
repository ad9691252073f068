/** Charges the rates of a task's limits before its run begins. A task whose rate is used up is held, and uses up no attempt. */

import type { Task } from "../core/task.ts";
import type { LimitChanges, LimitSource } from "../core/task-limits.ts";
import { TaskLimits } from "../core/task-limits.ts";
import { type Charge, RateBucket, systemBucketClock } from "../host/rate-bucket.ts";

/** What the names of tasks say that wait for this rate: see stage "hold" in `names.ts`. */
export function rateHold(limit: string): string {
  return `rate-${limit}`;
}

export type Charged =
  /** When each rate was charged (µs, see `BucketClock`); undefined for a task without a rate. */
  | { may: true; rates: Readonly<Record<string, number>> | undefined }
  | { may: false; limit: string; waitMs: number };

const FREE: Charged = { may: true, rates: undefined };

export class Rates {
  private readonly dir: string;
  private readonly settings: LimitSource;
  private readonly isDurable: boolean;
  private limits: TaskLimits;
  private changes: LimitChanges;

  constructor(dir: string, settings: LimitSource, isDurable: boolean) {
    this.dir = dir;
    this.settings = settings;
    this.isDurable = isDurable;
    this.changes = {};
    this.limits = new TaskLimits(settings);
  }

  /**
   * @param changes by commands, as `control.json` has them now
   * @throws a system error when a rate cannot be charged
   */
  charge({ group, limits: own }: Pick<Task, "group" | "limits">, changes: LimitChanges): Charged {
    if (changes !== this.changes) {
      this.changes = changes;
      this.limits = new TaskLimits(this.settings, changes);
    }
    const rates: Record<string, number> = {};
    let hasRates = false;
    for (const name of this.limits.namesOf(group, own)) {
      const rate = this.limits.rateOf(name);
      if (rate === undefined) continue;
      const bucket = new RateBucket(this.dir, name, systemBucketClock(), this.isDurable);
      const { waitMs, atUs }: Charge = bucket.take(rate);
      if (waitMs > 0) return { may: false, limit: name, waitMs };
      rates[name] = atUs;
      hasRates = true;
    }
    return hasRates ? { may: true, rates } : FREE;
  }
}
