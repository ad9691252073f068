/** The cases: small ones that are walked in every order, and large ones that chance puts together. */
import type { SeededRandom } from "../support/seeded-random.ts";
import { MemoryDisk } from "./memory-storage.ts";
import {
  canceller,
  commander,
  commandTaker,
  type Deed,
  type Dropped,
  dropper,
  loneWorker,
  producer,
  recoverer,
  retrier,
  supervisor,
  sweeper,
  task,
  worker,
} from "./programs.ts";
import {
  addActor,
  newWorld,
  type Program,
  type Variant,
  type World,
  type WorldOptions,
} from "./world.ts";

export interface SmallCase {
  name: string;
  /** How many processes may die alone. */
  kills: number;
  durability: "power" | "process";
  /** Files that lie in the inbox, whose task has failed before, or that were refused. */
  before?: { inbox?: Dropped[]; failed?: Dropped[]; refused?: Dropped[] };
  programs: () => Program[];
}

export const SMALL_CASES: readonly SmallCase[] = [
  {
    name: "a task from its submit to its result, with a recoverer that suspects the living",
    kills: 1,
    durability: "process",
    programs: () => [
      producer("p", [task("a", "1")]),
      supervisor("s", 1),
      worker("w", ["complete"], 2),
      recoverer("r", 1, 1),
    ],
  },
  {
    name: "the same, with the power going at any moment",
    kills: 0,
    durability: "power",
    programs: () => [
      producer("p", [task("a", "1")]),
      supervisor("s", 1),
      worker("w", ["complete"], 2),
    ],
  },
  {
    name: "two recoverers with false suspicions and two workers for one task",
    kills: 1,
    durability: "process",
    before: { inbox: [task("a", "1")] },
    programs: () => [
      supervisor("s", 1),
      worker("w", ["complete"], 2),
      worker("v", ["complete"], 2),
      recoverer("r", 1, 1),
      recoverer("q", 1, 1),
    ],
  },
  {
    name: "a last attempt that two recoverers end, while its worker goes on",
    kills: 1,
    durability: "process",
    before: { inbox: [task("a", "1", { max_attempts: 1 })] },
    programs: () => [
      supervisor("s", 1),
      worker("w", ["complete"], 2),
      recoverer("r", 2, 1),
      recoverer("q", 2, 1),
    ],
  },
  {
    name: "two producers of one id with different tasks",
    kills: 1,
    durability: "process",
    programs: () => [
      producer("p", [task("a", "1")]),
      producer("o", [task("a", "2")]),
      supervisor("s", 2),
    ],
  },
  {
    name: "a task is cancelled, and waits in the inbox again",
    kills: 1,
    durability: "process",
    before: { inbox: [task("a", "1")] },
    programs: () => [
      supervisor("s", 2),
      worker("w", ["complete"], 2),
      canceller("c", "a", false, 1),
      recoverer("r", 1, 1),
    ],
  },
  {
    name: "a dead letter is retried twice at once, and recovered",
    kills: 1,
    durability: "process",
    before: { failed: [task("a", "1")] },
    programs: () => [
      retrier("c", "a", 1),
      retrier("d", "a", 1),
      supervisor("s", 1),
      recoverer("r", 1, 1),
    ],
  },
  {
    name: "a dead letter is retried while the power may go",
    kills: 0,
    durability: "power",
    before: { failed: [task("a", "1")] },
    programs: () => [retrier("c", "a", 1), supervisor("s", 1), worker("w", ["complete"], 2)],
  },
  {
    name: "a bad file is refused, and a recoverer finishes it too early",
    kills: 1,
    durability: "process",
    before: { inbox: [{ id: "a", text: '{"id":"other"}' }] },
    programs: () => [supervisor("s", 2), recoverer("r", 1, 1), recoverer("q", 1, 1)],
  },
  {
    name: "a bad file is refused while the power may go",
    kills: 0,
    durability: "power",
    before: { inbox: [{ id: "a", text: '{"id":"other"}' }] },
    programs: () => [supervisor("s", 1), producer("p", [task("a", "1")])],
  },
  {
    name: "another task is dropped under an id that has settled",
    kills: 1,
    durability: "process",
    before: { failed: [task("a", "1")] },
    programs: () => [
      dropper("d", [task("a", "2")]),
      supervisor("s", 2),
      producer("p", [task("a", "3")]),
    ],
  },
  {
    name: "a dead letter is retried while another task of its id is submitted",
    kills: 1,
    durability: "process",
    before: { failed: [task("a", "1")] },
    programs: () => [retrier("c", "a", 1), producer("p", [task("a", "2")]), supervisor("s", 1)],
  },
  {
    name: "a dead letter is retried while the same task is submitted again",
    kills: 1,
    durability: "process",
    before: { failed: [task("a", "1")] },
    programs: () => [retrier("c", "a", 1), producer("p", [task("a", "1")]), supervisor("s", 1)],
  },
  {
    name: "a dead letter is retried while the same task is dropped again",
    kills: 1,
    durability: "process",
    before: { failed: [task("a", "1")] },
    programs: () => [retrier("c", "a", 1), dropper("d", [task("a", "1")]), supervisor("s", 1)],
  },
  {
    name: "a dead letter is retried before its settler has taken its marker away",
    kills: 0,
    durability: "process",
    before: { inbox: [task("a", "1", { max_attempts: 1 })] },
    programs: () => [supervisor("s", 2), worker("w", ["fail"], 2), retrier("c", "a", 2)],
  },
  {
    name: "a dead letter is retried, and another task dropped, before its settler has ended",
    kills: 0,
    durability: "process",
    before: { inbox: [task("a", "1", { max_attempts: 1 })] },
    programs: () => [
      supervisor("s", 1),
      worker("w", ["fail"], 2),
      retrier("c", "a", 2),
      dropper("d", [task("a", "2")]),
    ],
  },
  {
    name: "a task is put back by somebody who stands still between its two names",
    kills: 1,
    durability: "process",
    before: { inbox: [task("a", "1")] },
    programs: () => [
      supervisor("s", 2, 1),
      worker("w", ["complete"], 2),
      canceller("c", "a", false, 1),
    ],
  },
  {
    name: "a refused file is retried while a mended one is submitted",
    kills: 1,
    durability: "process",
    before: { refused: [task("a", "1")] },
    programs: () => [retrier("c", "a", 1), producer("p", [task("a", "2")]), recoverer("r", 1, 1)],
  },
  {
    name: "one task is sent twice while another takes its id",
    kills: 0,
    durability: "process",
    before: { inbox: [task("a", "1")] },
    programs: () => [
      producer("p", [task("a", "2")]),
      producer("o", [task("a", "2")]),
      supervisor("s", 1),
    ],
  },
  {
    name: "a sweeper passes while a task is submitted",
    kills: 1,
    durability: "process",
    programs: () => [producer("p", [task("a", "1")]), supervisor("s", 1), sweeper("y", 1)],
  },
  {
    name: "a sweeper passes while a task is settled",
    kills: 0,
    durability: "process",
    before: { inbox: [task("a", "1")] },
    programs: () => [supervisor("s", 1), worker("w", ["complete"], 2), sweeper("y", 1)],
  },
  {
    name: "a command is given, taken, and taken up again",
    kills: 1,
    durability: "process",
    programs: () => [commander("p", 1), commandTaker("t", 2), recoverer("r", 1, 1, "control")],
  },
];

export function openSmallCase(c: SmallCase, variant?: Variant): World {
  const disk = new MemoryDisk();
  const world = newWorld(disk, optionsOf(c.durability, variant));
  layOut(world, c.before ?? {});
  for (const program of c.programs()) addActor(world, program);
  return world;
}

function optionsOf(durability: WorldOptions["durability"], variant?: Variant): WorldOptions {
  return { durability, ...(variant === undefined ? {} : { variant }) };
}

function layOut({ disk, ledger, ...world }: World, before: NonNullable<SmallCase["before"]>): void {
  void world;
  const wanted = new Map(ledger.wanted);
  const settled = new Map(ledger.settled);
  const put = (path: string, { id, text }: Dropped, content: string): void => {
    const ino = disk.createEmpty(path);
    disk.fill(ino, Buffer.from(`${content}\n`));
    disk.sync(path);
    wanted.set(`/m ${text}`, { root: "/m", id, text });
  };
  for (const file of before.inbox ?? []) put(`/m/inbox/${file.id}.json`, file, file.text);
  const recordOf = (id: string, more: object): string =>
    JSON.stringify({ task_id: id, status: "failed", error: "x", agent_id: "w", ...more });
  for (const file of before.failed ?? []) {
    const head = recordOf(file.id, { attempts: 1, kind: "exit", lease: "old.1.x" });
    put(`/m/failed/${file.id}_error.json`, file, `${head.slice(0, -1)},"task":${file.text}}`);
    settled.set(`/m ${file.id}`, {
      ino: disk.look(`/m/failed/${file.id}_error.json`)?.ino ?? 0,
      lease: "old.1.x",
    });
  }
  for (const file of before.refused ?? []) {
    put(`/m/failed/${file.id}~x.json`, file, file.text);
    const more = { attempts: 0, kind: "invalid", lease: "x", file: `failed/${file.id}~x.json` };
    put(`/m/failed/${file.id}_error.json`, file, recordOf(file.id, more));
  }
  Object.assign(ledger, { wanted, settled });
}

const DEEDS: readonly Deed[] = ["complete", "fail", "retry", "release", "requeue", "beat"];

/** Up to four ids and a dozen processes, put together by chance. */
export function openLargeCase(chance: SeededRandom, variant?: Variant): World {
  const durability = chance.pick(["power", "process"] as const);
  const world = newWorld(new MemoryDisk(), optionsOf(durability, variant));
  const ids = ["a", "b", "c", "d"].slice(0, 1 + chance.below(4));
  const some = <T>(max: number, make: () => T): T[] =>
    Array.from({ length: chance.below(max + 1) }, make);
  const maxAttempts = 1 + chance.below(3);
  const drop = (): Dropped =>
    task(chance.pick(ids), String(chance.below(3)), { max_attempts: maxAttempts });
  const script = (): Deed[] => [chance.pick(DEEDS), chance.pick(DEEDS), "complete"];
  layOut(world, {
    inbox: chance.below(3) === 0 ? [drop()] : [],
    failed: chance.below(2) === 0 ? [task("a", "0", { max_attempts: maxAttempts })] : [],
  });
  const programs: Program[] = [
    producer("p", [drop(), ...some(2, drop)]),
    producer("o", some(2, drop)),
    supervisor("s", 3 + chance.below(4), chance.below(3)),
    worker("w", script(), 2 + chance.below(6)),
    worker("v", script(), 2 + chance.below(6)),
    recoverer("r", chance.below(4), 1 + chance.below(3)),
    recoverer("q", chance.below(4), 1 + chance.below(3)),
  ];
  const id = chance.pick(ids);
  const others: Program[] = [
    // What `mv` drops is as durable as whoever drops it makes it: not part of a power cut.
    ...(durability === "process"
      ? [dropper("d", [drop(), ...some(1, drop)]), dropper("b", [{ id, text: '{"id":"other"}' }])]
      : []),
    canceller("c", id, chance.below(2) === 0, 3),
    retrier("e", id, 2),
    retrier("f", id, 2),
    sweeper("y", 2),
    commander("k", 1 + chance.below(2)),
    commandTaker("t", 2 + chance.below(3)),
    recoverer("u", chance.below(2), 2, "control"),
  ];
  for (const program of [...programs, ...others.filter(() => chance.below(2) === 0)])
    if (program.turnsMax > 0) addActor(world, program);
  return world;
}

/** A worker without a supervisor, and with one. */
export function openLoneCase(chance: SeededRandom, variant?: Variant): World {
  const world = newWorld(new MemoryDisk(), optionsOf("process", variant));
  addActor(world, producer("p", [task("a", "1")]));
  addActor(world, loneWorker("l", "a", 4));
  addActor(world, loneWorker("m", "a", 4));
  if (chance.below(2) === 0) addActor(world, supervisor("s", 3));
  addActor(world, recoverer("r", 2, 2));
  return world;
}
