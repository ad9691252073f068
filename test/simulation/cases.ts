/** The cases: small ones that are walked in every order, and large ones that chance puts together. */
import { inboxName, resultName, resultsName, settledBatchName } from "../../src/core/names.ts";
import { keyNotePath } from "../../src/mailbox/submit/keys.ts";
import type { SeededRandom } from "../support/seeded-random.ts";
import { BATCH_CASES } from "./batch-cases.ts";
import { noteDoneLines, noteOnce } from "./checker.ts";
import { MemoryDisk } from "./memory-storage.ts";
import {
  archiver,
  batch,
  batchProducer,
  canceller,
  commander,
  commandTaker,
  type Deed,
  type Dropped,
  dropper,
  keyTaker,
  loneWorker,
  onceProducer,
  producer,
  recoverer,
  retrier,
  sweeper,
  task,
  ticketFinisher,
  worker,
} from "./programs.ts";
import { supervisor } from "./supervisor.ts";
import { addActor, newWorld, type Program, type World, type WorldOptions } from "./world.ts";

const DAY_MS = 24 * 3_600_000;

/** A task that depends on another one. */
function after(id: string, on: string): Dropped {
  return task(id, "after", { metadata: { dependencies: [on] } });
}

/** Of these one is in work at a time. */
function keyed(id: string): Dropped {
  return task(id, "keyed", { dedup_key: "k" });
}

const CALLS = { on_settled: { title: "called" } };

export interface SmallCase {
  name: string;
  /** States that `npm test` walks, where that is not as many as of the others. */
  statesMax?: number;
  /** How many processes may die alone. */
  kills: number;
  durability: "power" | "process";
  /** Files that lie in the inbox, whose task has failed or completed before, or that were refused. */
  before?: {
    inbox?: Dropped[];
    failed?: Dropped[];
    completed?: Dropped[];
    refused?: Dropped[];
    /** Batches of which all lines but the last have completed. */
    settled?: Dropped[];
    /** Tasks that are submitted once, in the inbox; their sender died before it closed their tickets. */
    open?: Dropped[];
    /** The id of a task that held the key `k`, and is gone. */
    holder?: string;
  };
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
    name: "a retry that a worker puts off whose clock is a day ahead",
    kills: 1,
    durability: "process",
    before: { inbox: [task("a", "1")] },
    programs: () => [
      supervisor("s", 3),
      { ...worker("w", ["later"], 2), clockAheadMs: DAY_MS },
      worker("v", ["complete"], 2),
      recoverer("r", 1, 1),
    ],
  },
  {
    name: "a task that a worker puts to wait at a gate, that is let go, and that a person cancels",
    kills: 1,
    durability: "process",
    before: { inbox: [task("a", "1")] },
    programs: () => [
      supervisor("s", 3),
      worker("w", ["hold"], 2),
      worker("v", ["complete"], 2),
      canceller("c", "a", true, 1),
      recoverer("r", 1, 1),
    ],
  },
  {
    name: "two supervisors let go what waits at a gate, with the power going at any moment",
    kills: 0,
    durability: "power",
    before: { inbox: [task("a", "1")] },
    programs: () => [
      supervisor("s", 2),
      supervisor("t", 2),
      worker("w", ["hold"], 2),
      worker("v", ["complete"], 2),
    ],
  },
  {
    name: "two tasks with one key, seen by two supervisors",
    kills: 1,
    durability: "process",
    before: { inbox: [keyed("a"), keyed("b")] },
    programs: () => [keyTaker("s", "a"), keyTaker("t", "b"), worker("w", ["complete"], 1)],
  },
  {
    name: "a supervisor with its workers, and tasks that come with a key that is taken",
    statesMax: 400,
    kills: 1,
    durability: "process",
    before: { inbox: [keyed("a"), keyed("b")] },
    programs: () => [supervisor("s", 2), worker("w", ["complete"], 2), recoverer("r", 1, 1)],
  },
  {
    name: "a key is given on by two supervisors",
    kills: 1,
    durability: "process",
    before: { holder: "a", inbox: [keyed("b"), keyed("c"), keyed("d")] },
    programs: () => [
      keyTaker("s", "b"),
      keyTaker("t", "c"),
      keyTaker("u", "d"),
      worker("w", ["complete"], 1),
    ],
  },
  {
    name: "two tasks with one key while the power may go",
    kills: 0,
    durability: "power",
    before: { inbox: [keyed("a")] },
    programs: () => [supervisor("s", 1), producer("p", [keyed("b")])],
  },
  {
    name: "two submit a task once, and its record is taken away before one of them asks again",
    kills: 1,
    durability: "process",
    programs: () => [
      onceProducer("p", task("a", "1"), 2),
      onceProducer("o", task("a", "2"), 1),
      supervisor("s", 2, 1),
      worker("w", ["complete"], 2),
      archiver("c", "a", 2),
    ],
  },
  {
    name: "the sender of a task that is submitted once died before it closed the ticket",
    kills: 1,
    durability: "process",
    before: { open: [task("a", "1")] },
    programs: () => [
      ticketFinisher("f", 2),
      archiver("c", "a", 2),
      worker("w", ["complete"], 2),
      supervisor("s", 2, 1),
    ],
  },
  {
    name: "a task that is submitted once, with the power going at any moment",
    kills: 0,
    durability: "power",
    programs: () => [
      onceProducer("p", task("a", "1"), 1),
      ticketFinisher("o", 1),
      supervisor("s", 1),
      worker("w", ["complete"], 2),
    ],
  },
  {
    name: "a task that is submitted once, while a person drops another one of its id",
    kills: 1,
    durability: "process",
    programs: () => [
      onceProducer("p", task("a", "1"), 2),
      dropper("d", [task("a", "2")]),
      ticketFinisher("o", 1),
      supervisor("s", 2, 1),
      worker("w", ["complete"], 2),
    ],
  },
  {
    name: "a task that calls another one, with a recoverer that suspects the living",
    statesMax: 600,
    kills: 1,
    durability: "process",
    before: { inbox: [task("a", "1", CALLS)] },
    programs: () => [
      supervisor("s", 2),
      worker("w", ["complete"], 2),
      worker("v", ["complete"], 2),
      recoverer("r", 1, 1),
    ],
  },
  {
    name: "a task that calls another one, with the power going at any moment",
    kills: 0,
    durability: "power",
    before: { inbox: [task("a", "1", CALLS)] },
    programs: () => [supervisor("s", 1), worker("w", ["complete"], 2)],
  },
  {
    name: "a task that is skipped calls another one, and is recovered",
    statesMax: 600,
    kills: 1,
    durability: "process",
    before: {
      failed: [task("a", "1")],
      inbox: [task("b", "after", { metadata: { dependencies: ["a"] }, ...CALLS })],
    },
    programs: () => [supervisor("s", 2), recoverer("r", 1, 1)],
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
    name: "two tasks are skipped, while the one that failed is retried",
    kills: 1,
    durability: "process",
    before: { failed: [task("a", "1")], inbox: [after("b", "a"), after("c", "b")] },
    programs: () => [
      supervisor("s", 2),
      retrier("o", "a", 1),
      worker("w", ["complete"], 2),
      recoverer("r", 1, 1),
    ],
  },
  {
    name: "a task is skipped, and recovered",
    kills: 1,
    durability: "process",
    before: { failed: [task("a", "1")], inbox: [after("b", "a")] },
    programs: () => [supervisor("s", 2), recoverer("r", 1, 2), worker("w", ["complete"], 2)],
  },
  {
    name: "two tasks are skipped and put back while the power may go",
    kills: 0,
    durability: "power",
    before: { failed: [task("a", "1")], inbox: [after("b", "a"), after("c", "b")] },
    programs: () => [supervisor("s", 1), retrier("o", "a", 1), worker("w", ["complete"], 2)],
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
    name: "a task is cancelled while the power may go",
    kills: 0,
    durability: "power",
    before: { inbox: [task("a", "1")] },
    programs: () => [supervisor("s", 2), worker("w", ["beat"], 1), canceller("c", "a", false, 1)],
  },
  {
    name: "one task is sent twice while the power may go",
    kills: 0,
    durability: "power",
    programs: () => [
      producer("p", [task("a", "1")]),
      producer("o", [task("a", "1")]),
      supervisor("s", 1),
    ],
  },
  {
    name: "a file that is no resend after all is put back while the power may go",
    kills: 0,
    durability: "power",
    before: { failed: [task("a", "1")], inbox: [task("a", "1")] },
    programs: () => [supervisor("s", 1), retrier("c", "a", 1), producer("p", [task("a", "2")])],
  },
  {
    name: "a refused file is retried while the power may go",
    kills: 0,
    durability: "power",
    before: { refused: [task("a", "1")] },
    programs: () => [retrier("c", "a", 1), supervisor("s", 1), worker("w", ["complete"], 2)],
  },
  {
    name: "a record is archived while the power may go",
    kills: 0,
    durability: "power",
    before: { inbox: [task("a", "1")] },
    programs: () => [supervisor("s", 1), worker("w", ["complete"], 2), archiver("h", "a", 1)],
  },
  {
    name: "a command is given and taken while the power may go",
    kills: 0,
    durability: "power",
    programs: () => [commander("p", 1), commandTaker("t", 1)],
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
    name: "a completed task is run again twice at once, and recovered",
    kills: 1,
    durability: "process",
    before: { completed: [task("a", "1")] },
    programs: () => [
      retrier("c", "a", 1, true),
      retrier("d", "a", 1, true),
      supervisor("s", 1),
      recoverer("r", 1, 1),
    ],
  },
  {
    name: "a completed task is run again while the power may go",
    kills: 0,
    durability: "power",
    before: { completed: [task("a", "1")] },
    programs: () => [retrier("c", "a", 1, true), supervisor("s", 1), worker("w", ["complete"], 2)],
  },
  {
    name: "a completed task is run again while the same task is dropped again",
    kills: 1,
    durability: "process",
    before: { completed: [task("a", "1")] },
    programs: () => [
      retrier("c", "a", 1, true),
      dropper("d", [task("a", "1")]),
      supervisor("s", 1),
    ],
  },
  {
    name: "a completed task is run again while another task of its id is submitted",
    kills: 1,
    durability: "process",
    before: { completed: [task("a", "1")] },
    programs: () => [
      retrier("c", "a", 1, true),
      producer("p", [task("a", "2")]),
      supervisor("s", 1),
    ],
  },
  {
    name: "a completed task is run again before its settler has taken its marker away",
    kills: 0,
    durability: "process",
    before: { inbox: [task("a", "1")] },
    programs: () => [supervisor("s", 2), worker("w", ["complete"], 2), retrier("c", "a", 2, true)],
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
  ...BATCH_CASES,
];

/** What makes a variant broken. */
export type Broken = Omit<WorldOptions, "durability">;

export function openSmallCase(c: SmallCase, broken: Broken = {}): World {
  const disk = new MemoryDisk();
  const world = newWorld(disk, { durability: c.durability, ...broken });
  layOut(world, c.before ?? {});
  for (const program of c.programs()) addActor(world, program);
  return world;
}

function layOut(world: World, before: NonNullable<SmallCase["before"]>): void {
  const { disk, ledger } = world;
  const wanted = new Map(ledger.wanted);
  const settled = new Map(ledger.settled);
  const put = (path: string, { id, text }: Dropped, content: string): void => {
    const ino = disk.createEmpty(path);
    disk.fill(ino, Buffer.from(`${content}\n`));
    disk.sync(path);
    wanted.set(`/m ${text}`, { root: "/m", id, text });
  };
  for (const file of before.inbox ?? []) {
    const path = `/m/inbox/${inboxName(file)}`;
    put(path, file, file.text);
    // Moved here, and whole.
    if (file.isBatch === true) disk.touch(path, disk.nowMs - 1);
  }
  const recordOf = (id: string, more: object): string =>
    JSON.stringify({ task_id: id, status: "failed", error: "x", agent_id: "w", ...more });
  for (const file of before.completed ?? []) {
    const path = `/m/outbox/${file.id}_result.json`;
    const head = JSON.stringify({ task_id: file.id, status: "completed", agent_id: "w" });
    const more = `"output":"","verdict":"pass","duration_ms":1,"completed_at":1,"attempts":1,"lease":"old.1.x"`;
    put(path, file, `${head.slice(0, -1)},${more},"task":${file.text}}`);
    settled.set(`/m ${file.id}`, { ino: disk.look(path)?.ino ?? 0, lease: "old.1.x" });
  }
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
  if (before.holder !== undefined) {
    const path = keyNotePath({ dir: "/m" }, "k");
    disk.makeDir("/m/.keys");
    disk.fill(disk.createEmpty(path), Buffer.from(`{"id":"${before.holder}","since_ms":1}\n`));
    disk.sync(path);
  }
  for (const file of before.open ?? []) {
    const { id, text } = file;
    disk.makeDir("/m/.once");
    put(`/m/.once/${id}.note`, file, "0");
    put(`/m/.once/${id}~0.json`, file, text);
    disk.link(`/m/.once/${id}~0.json`, `/m/inbox/${id}.json`);
    noteOnce(world, id, text);
  }
  for (const file of before.settled ?? []) {
    const { id, text } = file;
    const lines = text.split("\n").map((_line, index, all) =>
      JSON.stringify({
        line: index + 1,
        id: `${id}#${index + 1}`,
        status: index + 1 < all.length ? "completed" : "failed",
        attempts: 1,
      }),
    );
    put(`/m/outbox/${resultsName(id)}`, file, lines.join("\n"));
    put(`/m/outbox/${settledBatchName(id, "old")}`, file, text);
    const path = `/m/outbox/${resultName(id)}`;
    const head = JSON.stringify({ task_id: id, status: "completed", agent_id: "w" });
    const counts = `"batch":{"lines":${lines.length},"completed":${lines.length - 1},"failures":1,"bad":0}`;
    const more = `"output":null,"verdict":"fail","duration_ms":1,"completed_at":1,"attempts":1,"lease":"old.1.x"`;
    put(path, file, `${head.slice(0, -1)},${more},${counts}}`);
    settled.set(`/m ${id}`, { ino: disk.look(path)?.ino ?? 0, lease: "old.1.x" });
  }
  disk.syncAll();
  world.ledger = { ...world.ledger, wanted, settled };
  for (const { id } of before.settled ?? []) noteDoneLines(world, "/m", id);
}

const DEEDS: readonly Deed[] = [
  "complete",
  "fail",
  "retry",
  "later",
  "release",
  "hold",
  "requeue",
  "beat",
];
/** How far clocks are from the true one (ms). */
const CLOCKS_MS: readonly number[] = [0, 0, 0, DAY_MS, -DAY_MS, 5000];

/** Up to four ids, a batch and a dozen processes, put together by chance. */
export function openLargeCase(chance: SeededRandom, broken: Broken = {}): World {
  const durability = chance.pick(["power", "process"] as const);
  const world = newWorld(new MemoryDisk(), { durability, ...broken });
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
    settled: chance.below(3) === 0 ? [batch("e", "0", "1")] : [],
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
    retrier("f", id, 2, chance.below(2) === 0),
    sweeper("y", 2),
    commander("k", 1 + chance.below(2)),
    commandTaker("t", 2 + chance.below(3)),
    recoverer("u", chance.below(2), 2, "control"),
    ...(chance.below(3) === 0
      ? [
          batchProducer("g", batch("e", "0", "1")),
          batchProducer("h", batch("e", "0", chance.pick(["1", "2"]))),
          retrier("i", "e", 2),
          retrier("j", "e", 2),
        ]
      : []),
  ];
  for (const program of [...programs, ...others.filter(() => chance.below(2) === 0)])
    if (program.turnsMax > 0) addActor(world, { ...program, clockAheadMs: chance.pick(CLOCKS_MS) });
  return world;
}

/** A worker without a supervisor, and with one. */
export function openLoneCase(chance: SeededRandom, broken: Broken = {}): World {
  const world = newWorld(new MemoryDisk(), { durability: "process", ...broken });
  addActor(world, producer("p", [task("a", "1")]));
  addActor(world, loneWorker("l", "a", 4));
  addActor(world, loneWorker("m", "a", 4));
  if (chance.below(2) === 0) addActor(world, supervisor("s", 3));
  addActor(world, recoverer("r", 2, 2));
  return world;
}

/**
 * A task that several processes submit once, while it runs, waits again, and its record is taken away. It is not put back into the
 * inbox: a crash in the middle of that leaves a second copy, which only the record shows to be one.
 */
export function openOnceCase(chance: SeededRandom, broken: Broken = {}): World {
  const durability = chance.pick(["power", "process"] as const);
  const world = newWorld(new MemoryDisk(), { durability, ...broken });
  const deeds = DEEDS.filter((deed) => deed !== "requeue");
  layOut(world, { open: chance.below(4) === 0 ? [task("n", "1")] : [] });
  const programs = [
    onceProducer("p", task("n", "1"), 1 + chance.below(3)),
    onceProducer("o", task("n", "2"), 1 + chance.below(3)),
    ticketFinisher("f", 1 + chance.below(3)),
    supervisor("s", 2 + chance.below(4), chance.below(3)),
    worker("w", [chance.pick(deeds), "complete"], 4),
    worker("v", [chance.pick(deeds), "complete"], 4),
    recoverer("r", chance.below(3), 2),
    archiver("x", "n", 3),
    archiver("y", "n", 3),
    ...(chance.below(3) === 0 ? [sweeper("z", 1)] : []),
    ...(chance.below(3) === 0 ? [canceller("c", "n", true, 2)] : []),
  ];
  for (const program of programs) addActor(world, program);
  return world;
}
