/** What strikes a pool under chaos, and when. Pure: all of it follows from the seed. */
import { type SeededRandom, seededRandom } from "../../support/seeded-random.ts";

export type FaultKind =
  | "kill worker"
  | "kill supervisor"
  | "kill program"
  | "kill all"
  | "stop worker"
  | "stop worker past its lease"
  | "stop supervisor"
  | "stop supervisor past its lock"
  | "stop program"
  | "rob the lock"
  | "shift one clock"
  | "shift all clocks";

export interface Fault {
  kind: FaultKind;
  /** Time since the fault before it (ms). */
  afterMs: number;
  /** In [0, 1): which of the possible victims. */
  victim: number;
  /** Whether it may strike a worker that holds nothing, or is just starting. */
  isAnybody: boolean;
  /** From SIGSTOP to SIGCONT (ms). */
  holdMs: number;
  /** What is added to a clock (ms), either way. */
  shiftMs: number;
}

/** How many of a hundred faults are of each kind. */
const WEIGHTS: Readonly<Record<FaultKind, number>> = {
  "kill worker": 15,
  "kill supervisor": 5,
  "kill program": 14,
  "kill all": 1,
  "stop worker": 17,
  "stop worker past its lease": 10,
  "stop supervisor": 6,
  "stop supervisor past its lock": 3,
  "stop program": 10,
  "rob the lock": 3,
  "shift one clock": 11,
  "shift all clocks": 5,
};

const HOUR_MS = 3_600_000;
/** Clocks stay within a day of the true one: retention is longer than that. */
export const SHIFT_MS_MAX = 20 * HOUR_MS;

export interface FaultTimes {
  minMs: number;
  maxMs: number;
  leaseTtlMs: number;
}

/** Faults without end. */
export function* faultsOf(seed: number, times: FaultTimes): Generator<Fault> {
  const random = seededRandom(seed);
  for (;;) {
    const kind = pickKind(random);
    const isLong = kind.endsWith("lease") || kind.endsWith("lock");
    yield {
      kind,
      afterMs: times.minMs + random.below(times.maxMs - times.minMs + 1),
      victim: random(),
      isAnybody: random() < 0.2,
      holdMs: isLong ? times.leaseTtlMs * (1.2 + random() * 1.3) : 50 + random.below(550),
      shiftMs: pickShift(random),
    };
  }
}

function pickKind(random: SeededRandom): FaultKind {
  const kinds = Object.entries(WEIGHTS) as [FaultKind, number][];
  let left = random.below(kinds.reduce((sum, [, weight]) => sum + weight, 0));
  for (const [kind, weight] of kinds) {
    if (left < weight) return kind;
    left -= weight;
  }
  throw new Error("the weights do not add up");
}

/** Mostly seconds, as a clock is set; sometimes minutes or hours. */
function pickShift(random: SeededRandom): number {
  const magnitudeMs = random.pick([500, 5000, 60_000, 15 * 60_000, 2 * HOUR_MS, 10 * HOUR_MS]);
  return Math.round((random() * 2 - 1) * magnitudeMs);
}
