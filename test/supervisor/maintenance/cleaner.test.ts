/** Retention of runs, refused folders, journals and evidence: in slices, and never of what is needed still. */
import fs from "node:fs";
import { dirname, join } from "node:path";
import { expect, it } from "vitest";
import { DEFAULT_SETTINGS } from "../../../src/core/settings.ts";
import { costsOf, type StateTree, stateTree } from "../../../src/core/state-tree.ts";
import { systemClock } from "../../../src/host/system-clock.ts";
import { fileOfDay, filesOfDays } from "../../../src/journal/daily.ts";
import { openTrays, type Trays } from "../../../src/mailbox/files/trays.ts";
import {
  type CleanChecks,
  Cleaner,
  type CleanScope,
} from "../../../src/supervisor/maintenance/cleaner.ts";
import { newPool, QUICK_CONFIG } from "../../support/pool.ts";
import { tempDir } from "../../support/temp-dir.ts";
import { waitFor } from "../../support/wait-for.ts";

const raise = (error: unknown): never => {
  throw error;
};

function upkeepOf(
  tree: StateTree,
  trays: Trays,
  scope: Partial<CleanScope> = {},
  checks: Partial<CleanChecks> = {},
): Cleaner {
  const { retention } = DEFAULT_SETTINGS;
  return new Cleaner(
    { tree, mailboxes: [trays], retention, clock: systemClock, ...scope },
    { isNeeded: () => false, isInPlan: () => undefined, onError: raise, ...checks },
  );
}

const LONG_AGO_S = Date.now() / 1000 - 365 * 24 * 60 * 60;

const DAY = "2025-01-31";
const nonce = (n: number): string => (n % 2 === 0 ? "abcd0123250131" : "s");

it("many old runs go in slices, without those of tasks that are taken up again meanwhile", () => {
  const tree = stateTree(tempDir());
  const trays = openTrays(tree.mailbox, { durability: "process" });
  for (let n = 0; n < 20; n++) {
    // Half of them lie in the folder of their day.
    const dir = join(tree.runs, ...(n % 2 === 0 ? [DAY] : []), `t${n}@${nonce(n)}.1.1`);
    fs.mkdirSync(join(dir, "1"), { recursive: true });
    fs.writeFileSync(join(dir, "stdout.log"), "");
    fs.utimesSync(dir, LONG_AGO_S, LONG_AGO_S);
  }
  fs.mkdirSync(join(tree.runs, "young@s.1.1"));
  const isLive = (id: string): void =>
    fs.writeFileSync(
      join(trays.processing, `${id}@${nonce(Number(id.slice(1)))}.1~w-x-1-1-1.json`),
      "{}",
    );
  isLive("t3");
  isLive("t4");
  // Each look at the clock takes a millisecond.
  let nowMs = 0;
  const clock = { ...systemClock, monotonicMs: () => nowMs++ };
  const upkeep = upkeepOf(tree, trays, { clock });
  const left = (): string[] => [
    ...fs.readdirSync(tree.runs).filter((name) => name !== DAY),
    ...fs.readdirSync(join(tree.runs, DAY)),
  ];
  const count = left().length;
  do upkeep.work(0);
  while (upkeep.hasWork && left().length === count);
  expect(left().length).toBeGreaterThan(15);
  const [again = ""] = left().filter((name) => !/^(?:t3|t4|young)@/.test(name));
  isLive(again.slice(0, again.indexOf("@")));
  while (upkeep.hasWork) upkeep.work(0);
  expect(left().sort()).toEqual(
    [again, `t3@${nonce(3)}.1.1`, `t4@${nonce(4)}.1.1`, "young@s.1.1"].sort(),
  );
});

it("no run goes while nobody can tell what is running", () => {
  const tree = stateTree(tempDir());
  const trays = openTrays(tree.mailbox, { durability: "process" });
  const dir = join(tree.runs, "t@s.1.1");
  fs.mkdirSync(dir, { recursive: true });
  fs.utimesSync(dir, LONG_AGO_S, LONG_AGO_S);
  fs.rmdirSync(trays.processing);
  fs.writeFileSync(trays.processing, "not a directory");
  const upkeep = upkeepOf(tree, trays);
  do upkeep.work(0);
  while (upkeep.hasWork);
  expect(fs.existsSync(dir)).toBe(true);
  fs.rmSync(trays.processing);
  do upkeep.work(60_000);
  while (upkeep.hasWork);
  expect(fs.existsSync(dir)).toBe(false);
});

const sweepOnce = (upkeep: Cleaner, nowMs = 0): void => {
  do upkeep.work(nowMs);
  while (upkeep.hasWork);
};

const age = (path: string): void => fs.utimesSync(path, LONG_AGO_S, LONG_AGO_S);

it("the folder of a day goes once it has been empty for a while", () => {
  const tree = stateTree(tempDir());
  const trays = openTrays(tree.mailbox, { durability: "process" });
  const [old = "", fresh = ""] = ["2025-01-31", "2025-02-01"].map((day) => join(tree.runs, day));
  for (const dir of [old, fresh]) fs.mkdirSync(dir, { recursive: true });
  age(old);
  sweepOnce(upkeepOf(tree, trays));
  expect([old, fresh].map((dir) => fs.existsSync(dir))).toEqual([false, true]);
});

it("a folder that was refused goes with its record, whatever is in it, and when one cannot go the others do", () => {
  const tree = stateTree(tempDir());
  const trays = openTrays(tree.mailbox, { durability: "process" });
  const folder = (name: string): string => {
    const path = join(trays.failed, name);
    fs.mkdirSync(join(path, "a", "b"), { recursive: true });
    fs.writeFileSync(join(path, "a", "file"), "");
    fs.writeFileSync(Buffer.concat([Buffer.from(`${path}/a/b/`), Buffer.from([0xff, 0xfe])]), "");
    fs.symlinkSync("/", join(path, "link"));
    return path;
  };
  const old = ["x~1.json", "y~2.ndjson"].map(folder);
  const notOurs = folder("kept-by-someone");
  const records = ["x~1_error.json", "stuck_error.json", "z_error.json"].map((name) =>
    join(trays.failed, name),
  );
  for (const path of records) fs.writeFileSync(path, "{}");
  for (const path of [...old, ...records, notOurs]) age(path);
  const { storage } = trays;
  // Their time of change is now: a rename into failed/ would have set it.
  const look: typeof storage.look = (path) => {
    const facts = storage.look(path);
    return facts === undefined ? undefined : { ...facts, ctimeMs: facts.mtimeMs };
  };
  const unlink: typeof storage.unlink = (path) => {
    if (path.includes("stuck")) throw Object.assign(new Error("EPERM: made up"), { code: "EPERM" });
    storage.unlink(path);
  };
  const faults: unknown[] = [];
  const odd = { ...trays, storage: { ...storage, look, unlink } };
  sweepOnce(upkeepOf(tree, odd, {}, { onError: (error) => faults.push(error) }));
  expect(fs.readdirSync(trays.failed).sort()).toEqual(["kept-by-someone", "stuck_error.json"]);
  expect(faults).toHaveLength(1);
  expect(fs.existsSync(join(notOurs, "a", "file"))).toBe(true);
});

it("journals that were rotated long ago go, without the last one of each", () => {
  const tree = stateTree(tempDir());
  const trays = openTrays(tree.mailbox, { durability: "process" });
  for (const dir of [join(tree.dir, "analytics"), tree.kv]) fs.mkdirSync(dir, { recursive: true });
  const files = [tree.events, tree.leases, tree.alerts, join(tree.kv, "history.jsonl")].flatMap(
    (path) => [
      path.replace(".jsonl", ".2025-01-01T00-00-00-000Z.jsonl"),
      path.replace(".jsonl", ".2025-01-02T00-00-00-000Z.jsonl"),
      path,
    ],
  );
  const others = [join(tree.kv, "history.json"), join(tree.kv, "node-1.json")];
  for (const path of [...files, ...others]) {
    fs.writeFileSync(path, "{}\n");
    age(path);
  }
  const young = tree.events.replace(".jsonl", ".2025-01-01T12-00-00-000Z.jsonl");
  fs.writeFileSync(young, "{}\n");
  sweepOnce(upkeepOf(tree, trays));
  const left = files.filter((path) => fs.existsSync(path));
  expect(left).toEqual(files.filter((_, n) => n % 3 !== 0));
  expect([young, ...others].filter((path) => !fs.existsSync(path))).toEqual([]);
});

it("what agents used long ago goes, without the last day, and the single file of earlier versions", () => {
  const tree = stateTree(tempDir());
  const trays = openTrays(tree.mailbox, { durability: "process" });
  fs.mkdirSync(join(tree.dir, "analytics"));
  const days = ["2025-01-01", "2025-01-02", "2025-01-03"].map((day) => Date.parse(day));
  const files = [costsOf(tree), ...days.map((ms) => fileOfDay(costsOf(tree), ms))];
  for (const path of files) {
    fs.writeFileSync(path, "{}\n");
    age(path);
  }
  fs.utimesSync(files[2] ?? "", Date.now() / 1000, Date.now() / 1000);
  sweepOnce(upkeepOf(tree, trays));
  expect(filesOfDays(costsOf(tree))).toEqual(files.slice(2));
});

it("of rotated journals no more is kept than the setting says: the oldest go, the last one of each stays", () => {
  const tree = stateTree(tempDir());
  const trays = openTrays(tree.mailbox, { durability: "process" });
  fs.mkdirSync(join(tree.dir, "analytics"));
  const rotated = (path: string, day: number): string => {
    const file = path.replace(".jsonl", `.2025-01-0${day}T00-00-00-000Z.jsonl`);
    fs.writeFileSync(file, "x".repeat(1000));
    fs.utimesSync(file, Date.now() / 1000, Date.now() / 1000 - 3600 * (9 - day));
    return file;
  };
  const lastLease = rotated(tree.leases, 1);
  const events = [2, 4, 6, 8].map((day) => rotated(tree.events, day));
  const alerts = [3, 5, 7].map((day) => rotated(tree.alerts, day));
  const retention = { ...DEFAULT_SETTINGS.retention, journal_bytes_max: 5500 };
  sweepOnce(upkeepOf(tree, trays, { retention }));
  const left = [lastLease, ...events, ...alerts].filter((path) => fs.existsSync(path));
  expect(left).toEqual([lastLease, ...events.slice(2), ...alerts.slice(1)]);
});

it("evidence goes of nodes that left the plan long ago, and of earlier runs; all stays while nobody knows the plan", () => {
  const tree = stateTree(tempDir());
  const trays = openTrays(tree.mailbox, { durability: "process" });
  const put = (path: string): string => {
    const dir = join(tree.evidence, path);
    fs.mkdirSync(dir, { recursive: true });
    fs.writeFileSync(join(dir, "summary.md"), "");
    return dir;
  };
  const dirs = ["gone", "gone/earlier/s1", "stays", "stays/earlier/old", "stays/earlier/new"].map(
    put,
  );
  const recent = put("gone-of-late");
  put(".tmp");
  for (const dir of [
    ...dirs.filter((path) => !path.endsWith("new")),
    join(tree.evidence, "gone", "earlier"),
    join(tree.evidence, ".tmp"),
  ])
    age(dir);
  const upkeep = upkeepOf(tree, trays);
  sweepOnce(upkeep);
  expect(dirs.every((dir) => fs.existsSync(dir))).toBe(true);
  sweepOnce(upkeepOf(tree, trays, {}, { isInPlan: () => (id) => id === "stays" }));
  const names = (path: string): string[] => fs.readdirSync(join(tree.evidence, path)).sort();
  expect(names(".")).toEqual([".tmp", "gone-of-late", "stays"]);
  expect(names("stays")).toEqual(["earlier", "summary.md"]);
  expect(names("stays/earlier")).toEqual(["new"]);
  expect(fs.existsSync(recent)).toBe(true);
});

it("a pool keeps the record of a task that ran for another machine until that one has the result", async () => {
  const pool = newPool({ config: QUICK_CONFIG });
  const { jobs } = stateTree(pool.state);
  const put = (path: string): string => {
    fs.mkdirSync(dirname(path), { recursive: true });
    fs.writeFileSync(path, "{}");
    fs.utimesSync(path, LONG_AGO_S, LONG_AGO_S);
    return path;
  };
  const kept = put(join(pool.outbox, "x.t.s.1_result.json"));
  put(join(jobs, "x.t.s.1.json"));
  // The sweep comes here when it has been through all results.
  const swept = put(join(pool.state, "mailbox", "failed", "y.t.s.1_error.json"));
  await pool.start();
  await waitFor(() => !fs.existsSync(swept), { what: "the sweep" });
  expect(fs.existsSync(kept)).toBe(true);
});
