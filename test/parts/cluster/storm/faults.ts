/** What strikes a cluster in a storm, and when. Pure: all of it follows from the seed. */
import { type SeededRandom, seededRandom } from "../../../support/seeded-random.ts";

export type FaultKind =
  | "kill a bridge"
  | "kill a supervisor"
  | "kill a worker"
  | "kill a machine"
  | "kill a server"
  | "kill most servers"
  | "stop a bridge"
  | "stop a machine"
  | "stop a server"
  | "cut a machine off"
  | "all servers lose their disks";

export interface Fault {
  kind: FaultKind;
  /** Time since the fault before it (ms). */
  afterMs: number;
  /** In [0, 1): which of the possible victims. */
  victim: number;
  /** How long it stays so (ms). */
  holdMs: number;
  /** Whether what waited on a cut line comes through, or is lost. */
  isLost: boolean;
}

/** How many of a hundred faults are of each kind. */
const WEIGHTS: Readonly<Record<FaultKind, number>> = {
  "kill a bridge": 24,
  "kill a supervisor": 12,
  "kill a worker": 16,
  "kill a machine": 8,
  "kill a server": 12,
  "kill most servers": 2,
  "stop a bridge": 7,
  "stop a machine": 4,
  "stop a server": 6,
  "cut a machine off": 10,
  // Once, in the middle.
  "all servers lose their disks": 0,
};

export interface FaultTimes {
  minMs: number;
  maxMs: number;
  /** The longest that something stands still, or is cut off (ms). */
  holdMs: number;
}

/** Faults without end. */
export function* faultsOf(seed: number, { minMs, maxMs, holdMs }: FaultTimes): Generator<Fault> {
  const random = seededRandom(seed);
  for (;;) {
    const kind = pickKind(random);
    // Most servers stay dead for as long as others stand still: what is remote must wait for them.
    const isShort = kind.startsWith("kill") && kind !== "kill most servers";
    const isLong = random() < 0.4;
    yield {
      kind,
      afterMs: minMs + random.below(maxMs - minMs + 1),
      victim: random(),
      holdMs: isShort ? random.below(2000) : isLong ? holdMs : random.below(holdMs),
      isLost: random() < 0.5,
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
