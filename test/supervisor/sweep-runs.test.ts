/** Retention of run directories: in slices, and never of a run that may go on. */
import fs from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { DEFAULT_SETTINGS } from "../../src/core/settings.ts";
import { stateTree } from "../../src/core/state-tree.ts";
import { systemClock } from "../../src/host/system-clock.ts";
import { openTrays } from "../../src/mailbox/trays.ts";
import { Upkeep } from "../../src/supervisor/upkeep.ts";
import { tempDir } from "../support/temp-dir.ts";

const raise = (error: unknown): never => {
  throw error;
};

const LONG_AGO_S = Date.now() / 1000 - 365 * 24 * 60 * 60;

it("many old runs go in slices, without those of tasks that are taken up again meanwhile", () => {
  const tree = stateTree(tempDir());
  const trays = openTrays(tree.mailbox, { durability: "process" });
  for (let n = 0; n < 20; n++) {
    const dir = join(tree.runs, `t${n}@s.1.1`);
    fs.mkdirSync(join(dir, "1"), { recursive: true });
    fs.writeFileSync(join(dir, "stdout.log"), "");
    fs.utimesSync(dir, LONG_AGO_S, LONG_AGO_S);
  }
  fs.mkdirSync(join(tree.runs, "young@s.1.1"));
  const isLive = (id: string): void =>
    fs.writeFileSync(join(trays.processing, `${id}@s.1~w-x-1-1-1.json`), "{}");
  isLive("t3");
  // Each look at the clock takes a millisecond.
  let nowMs = 0;
  const clock = { ...systemClock, monotonicMs: () => nowMs++ };
  const upkeep = new Upkeep(tree, [trays], DEFAULT_SETTINGS.retention, clock, () => false, raise);
  const left = (): string[] => fs.readdirSync(tree.runs);
  const count = left().length;
  do upkeep.work(0);
  while (upkeep.hasWork && left().length === count);
  expect(left().length).toBeGreaterThan(15);
  const [again = ""] = left().filter((name) => !/^(?:t3|young)@/.test(name));
  isLive(again.slice(0, again.indexOf("@")));
  while (upkeep.hasWork) upkeep.work(0);
  expect(left().sort()).toEqual([again, "t3@s.1.1", "young@s.1.1"].sort());
});

it("no run goes while nobody can tell what is running", () => {
  const tree = stateTree(tempDir());
  const trays = openTrays(tree.mailbox, { durability: "process" });
  const dir = join(tree.runs, "t@s.1.1");
  fs.mkdirSync(dir, { recursive: true });
  fs.utimesSync(dir, LONG_AGO_S, LONG_AGO_S);
  fs.rmdirSync(trays.processing);
  fs.writeFileSync(trays.processing, "not a directory");
  const clock = systemClock;
  const upkeep = new Upkeep(tree, [trays], DEFAULT_SETTINGS.retention, clock, () => false, raise);
  do upkeep.work(0);
  while (upkeep.hasWork);
  expect(fs.existsSync(dir)).toBe(true);
  fs.rmSync(trays.processing);
  do upkeep.work(60_000);
  while (upkeep.hasWork);
  expect(fs.existsSync(dir)).toBe(false);
});
