/** The small cases of batches: two lines, which their runs take over from each other. */
import type { SmallCase } from "./cases.ts";
import { batch, batchProducer, dropper, recoverer, retrier, worker } from "./programs.ts";
import { supervisor } from "./supervisor.ts";

/** A batch takes many calls: a state costs more, and says less, than one of a task. */
const STATES_MAX = 800;

export const BATCH_CASES: readonly SmallCase[] = [
  {
    name: "a batch from its submit to its results, with a recoverer that suspects the living",
    kills: 1,
    statesMax: STATES_MAX,
    durability: "process",
    programs: () => [
      batchProducer("p", batch("b", "1", "2")),
      supervisor("s", 1),
      worker("w", ["complete"], 2),
      recoverer("r", 1, 1),
    ],
  },
  {
    name: "a batch is settled while the power may go",
    kills: 0,
    statesMax: STATES_MAX,
    durability: "power",
    before: { inbox: [batch("b", "1", "2")] },
    programs: () => [supervisor("s", 1), worker("w", ["complete"], 2)],
  },
  {
    name: "a batch is put back after its first line, and settled by another, while the power may go",
    kills: 0,
    statesMax: STATES_MAX,
    durability: "power",
    before: { inbox: [batch("b", "1", "2")] },
    programs: () => [supervisor("s", 1), worker("w", ["release"], 2), worker("v", ["complete"], 2)],
  },
  {
    name: "the last attempt at a batch, which a recoverer ends while its worker goes on",
    kills: 1,
    statesMax: STATES_MAX,
    durability: "process",
    before: { inbox: [batch("b", "1", "2")] },
    programs: () => [
      supervisor("s", 1),
      worker("w", ["complete"], 2),
      recoverer("r", 1, 1, "trays", 1),
    ],
  },
  {
    name: "a settled batch is retried while the power may go",
    kills: 0,
    statesMax: STATES_MAX,
    durability: "power",
    before: { settled: [batch("b", "1", "2")] },
    programs: () => [retrier("c", "b", 1), supervisor("s", 1), worker("w", ["complete"], 2)],
  },
  {
    name: "a settled batch is retried twice at once, and recovered",
    kills: 1,
    statesMax: STATES_MAX,
    durability: "process",
    before: { settled: [batch("b", "1", "2")] },
    programs: () => [
      retrier("c", "b", 1),
      retrier("d", "b", 1),
      worker("w", ["complete"], 2),
      recoverer("r", 1, 1),
    ],
  },
  {
    name: "a batch is retried before its settler has taken its marker away",
    kills: 0,
    statesMax: STATES_MAX,
    durability: "process",
    before: { inbox: [batch("b", "1", "2")] },
    programs: () => [supervisor("s", 1), worker("w", ["fail"], 2), retrier("c", "b", 2)],
  },
  {
    name: "one batch is sent twice while the power may go",
    kills: 0,
    statesMax: STATES_MAX,
    durability: "power",
    programs: () => [
      batchProducer("p", batch("b", "1", "2")),
      batchProducer("o", batch("b", "1", "2")),
      supervisor("s", 2),
    ],
  },
  {
    name: "a batch is dropped again while the first one waits for a worker",
    kills: 1,
    statesMax: STATES_MAX,
    durability: "process",
    before: { inbox: [batch("b", "1", "2")] },
    programs: () => [dropper("d", [batch("b", "1", "2")]), supervisor("s", 4, 2)],
  },
  {
    name: "a batch that is being settled is sent again while the power may go",
    kills: 0,
    statesMax: STATES_MAX,
    durability: "power",
    before: { inbox: [batch("b", "1")] },
    programs: () => [
      supervisor("s", 2),
      worker("w", ["complete"], 2),
      batchProducer("p", batch("b", "1")),
    ],
  },
];
