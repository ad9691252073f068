/** Charges the rates of a task's limits before its run begins. A task whose rate is used up is held, and uses up no attempt. */
import { messageOf } from "../core/errors.ts";
import { deferred } from "../core/outcome.ts";
import type { Rate } from "../core/rate.ts";
import type { Task } from "../core/task.ts";
import type { LimitChanges, LimitSource } from "../core/task-limits.ts";
import { TaskLimits } from "../core/task-limits.ts";
import { type Charge, RateBucket, systemBucketClock } from "../host/rate-bucket.ts";
import type { Attempt } from "./runner.ts";

/** The gate in the names of tasks that wait for this rate: see stage "hold" in `names.ts`. */
function rateHold(limit: string): string {
  return `rate-${limit}`;
}

export type Charged =
  /** When each rate was charged (µs, see `BucketClock`); undefined for a task without a rate. */
  | { may: true; rates: Readonly<Record<string, number>> | undefined }
  | { may: false; limit: string; waitMs: number };

const FREE: Charged = { may: true, rates: undefined };

export class Rates {
  private limits: TaskLimits;
  private changes: LimitChanges;

  constructor(
    private readonly dir: string,
    private readonly settings: LimitSource,
    private readonly isDurable: boolean,
  ) {
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
    const buckets = this.limits.namesOf(group, own).flatMap((name) => this.bucketOf(name) ?? []);
    if (buckets.length === 0) return FREE;
    // If one rate does not allow the start, the others must not be charged for it.
    const late = buckets.length > 1 ? longest(buckets) : undefined;
    return late ?? take(buckets);
  }

  /** Undefined for a limit without a rate. */
  private bucketOf(limit: string): LimitBucket | undefined {
    const rate = this.limits.rateOf(limit);
    if (rate === undefined) return undefined;
    const bucket = new RateBucket(this.dir, limit, systemBucketClock(), this.isDurable);
    return { limit, rate, bucket };
  }
}

/** Charges the start of an attempt. If that cannot be done, the attempt gets its outcome here, and its run has not begun. */
export function chargeStart(rates: Rates, attempt: Attempt, changes: LimitChanges): void {
  try {
    const charged = rates.charge(attempt.decoded?.task ?? {}, changes);
    if (charged.may) {
      if (charged.rates !== undefined) attempt.rates = charged.rates;
      return;
    }
    const { limit, waitMs } = charged;
    const message = `the rate of limit ${limit} is used up`;
    attempt.outcome = { kind: "deferred", message, delayMs: waitMs, hold: rateHold(limit) };
  } catch (error) {
    attempt.outcome = deferred(`cannot charge the rate of its limits: ${messageOf(error)}`);
  }
  attempt.isUnbegun = true;
}

interface LimitBucket {
  limit: string;
  rate: Rate;
  bucket: RateBucket;
}

/** The limit that allows a start last; undefined if all allow one now. */
function longest(buckets: readonly LimitBucket[]): Charged | undefined {
  const waits = buckets.map(({ limit, rate, bucket }) => ({ limit, waitMs: bucket.waitMs(rate) }));
  const [late] = waits.sort((a, b) => b.waitMs - a.waitMs);
  return late === undefined || late.waitMs === 0 ? undefined : { may: false, ...late };
}

/** Charges all or none. If the process dies in between, its charges stay. */
function take(buckets: readonly LimitBucket[]): Charged {
  const rates: Record<string, number> = {};
  for (const [index, { limit, rate, bucket }] of buckets.entries()) {
    const { waitMs, atUs }: Charge = bucket.take(rate);
    if (waitMs === 0) {
      rates[limit] = atUs;
      continue;
    }
    // Another process was faster since we looked.
    for (const taken of buckets.slice(0, index)) taken.bucket.giveBack(taken.rate);
    return { may: false, limit, waitMs };
  }
  return { may: true, rates };
}
