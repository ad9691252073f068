/** What happens to the task of a walk beside what its bridges do, and how it must end. */
import type { KeptBroker } from "./kept-broker.ts";
import type { Notes } from "./places.ts";
import type { MachinePool, OriginPool } from "./pools.ts";

export interface Stage {
  broker: KeptBroker;
  origin: OriginPool;
  pools: readonly MachinePool[];
  notes: Notes;
}

export interface Case {
  /** Fields of the task. */
  task?: Record<string, unknown>;
  /** Only machine a is there. */
  isAlone?: true;
  /** The machines take no such tasks. */
  isRefused?: true;
  endOf?: (id: string) => "completes" | "fails";
  /** Whether its machine runs what waits; otherwise it waits longer. */
  mayRun?: (stage: Stage) => boolean;
  /** What people and accidents do. */
  step?: (stage: Stage) => Promise<void>;
  /** How it has ended. */
  ends: { tray: "outbox" | "failed"; attempts: number; kind?: string; code?: string };
  /** How many runs each of its dispatches may have. */
  runs: number[];
}

const isTaken = ({ pools }: Stage): boolean => pools.some((pool) => pool.noted().length > 0);

async function cancel(stage: Stage): Promise<void> {
  const { notes, origin } = stage;
  if (notes.has("cancelled") || !isTaken(stage)) return;
  if (await origin.cancel()) notes.add("cancelled");
}

export const CASES: Readonly<Record<string, Case>> = {
  completes: { ends: { tray: "outbox", attempts: 1 }, runs: [1] },
  "fails once": {
    endOf: (id) => (id.endsWith(".1") ? "fails" : "completes"),
    ends: { tray: "outbox", attempts: 2 },
    runs: [1, 1],
  },
  "fails for good": {
    task: { max_attempts: 1 },
    endOf: () => "fails",
    ends: { tray: "failed", attempts: 1, kind: "handler" },
    runs: [1],
  },
  "is refused": {
    isRefused: true,
    ends: { tray: "failed", attempts: 1, code: "ErrRefused" },
    runs: [],
  },
  "is cancelled": {
    mayRun: () => false,
    step: cancel,
    ends: { tray: "failed", attempts: 1, kind: "cancelled" },
    runs: [],
  },
  "is cancelled as it ends": {
    mayRun: ({ notes }) => notes.has("cancelled"),
    step: cancel,
    ends: { tray: "failed", attempts: 1, kind: "cancelled" },
    runs: [1],
  },
  "is cut off": {
    isAlone: true,
    mayRun: ({ notes }) => notes.has("back"),
    async step(stage) {
      const { notes, broker, pools } = stage;
      if (notes.has("back")) return;
      const [a] = pools;
      if (!notes.has("cut") && isTaken(stage)) notes.add("cut");
      if (notes.has("cut") && (a?.isNotedAs("left") === true || !isTaken(stage))) notes.add("back");
      broker.setCut("a", notes.has("cut") && !notes.has("back"));
    },
    ends: { tray: "outbox", attempts: 1 },
    runs: [1],
  },
  "its servers lose all": {
    mayRun: ({ notes }) => notes.has("wiped"),
    async step(stage) {
      const { notes, broker } = stage;
      const wipe = (note: string): void => {
        notes.add(note);
        broker.wipe();
      };
      if (!notes.has("wiped")) {
        if (isTaken(stage)) wipe("wiped");
      } else if (!notes.has("wiped again") && broker.has("result")) wipe("wiped again");
    },
    ends: { tray: "outbox", attempts: 1 },
    runs: [1],
  },
  "is let go": {
    mayRun: ({ notes }) => notes.has("let go"),
    async step(stage) {
      const { notes, origin } = stage;
      if (!notes.has("let go") && isTaken(stage) && origin.letGo()) notes.add("let go");
    },
    ends: { tray: "outbox", attempts: 1 },
    runs: [1],
  },
};
