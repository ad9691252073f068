/** Retention, and how old a file is: on the clock of its file system, not on ours. */
import fs from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { settledBatchName } from "../../src/core/names.ts";
import { DEFAULT_SETTINGS } from "../../src/core/settings.ts";
import { stateTree } from "../../src/core/state-tree.ts";
import { systemClock } from "../../src/host/system-clock.ts";
import { accept, claimReady, newSubmission } from "../../src/mailbox/claim/claim.ts";
import { sweepAll } from "../../src/mailbox/clean/sweep.ts";
import { openTrays, type Trays } from "../../src/mailbox/files/trays.ts";
import { beginQuarantine, finishQuarantine } from "../../src/mailbox/settle/quarantine.ts";
import { newSettlement, settleAll } from "../../src/mailbox/settle/settle.ts";
import { Cleaner } from "../../src/supervisor/maintenance/cleaner.ts";
import { tempDir } from "../support/temp-dir.ts";

const raise = (error: unknown): never => {
  throw error;
};

const HOUR_MS = 60 * 60 * 1000;
const DAY_MS = 24 * HOUR_MS;

/** A mailbox as one sees it whose own clock is that much ahead. */
function traysAhead(dir: string, aheadMs: number): Trays {
  const clock = { ...systemClock, wallMs: () => Date.now() + aheadMs };
  return openTrays(dir, { durability: "process", clock });
}

function put(dir: string, name: string, ageMs: number): void {
  fs.writeFileSync(join(dir, name), "{}");
  const seconds = (Date.now() - ageMs) / 1000;
  fs.utimesSync(join(dir, name), seconds, seconds);
}

it.each([2 * HOUR_MS, -2 * HOUR_MS, 60 * DAY_MS])(
  "a sweeper whose clock is off by %d ms takes what is old, and nothing that is new",
  (aheadMs) => {
    const trays = traysAhead(join(tempDir(), "mailbox"), aheadMs);
    put(trays.tmp, "of-a-producer.json", 1000);
    put(trays.tmp, "left.json", 2 * HOUR_MS);
    put(trays.outbox, "new_result.json", DAY_MS);
    put(trays.outbox, "old_result.json", 8 * DAY_MS);
    put(trays.failed, "new_error.json", DAY_MS);
    put(trays.failed, "old_error.json", 31 * DAY_MS);
    const counts = sweepAll(trays, { outboxDays: 7, failedDays: 30 });
    expect(counts).toMatchObject({ results: 1, errors: 1, staged: 1 });
    expect(fs.readdirSync(trays.tmp)).toEqual(["of-a-producer.json"]);
    expect(fs.readdirSync(trays.outbox)).toEqual(["new_result.json"]);
    expect(fs.readdirSync(trays.failed)).toEqual(["new_error.json"]);
  },
);

/** The same trays as a sweep sees them which comes that much later. */
function later(trays: Trays, ms: number): Trays {
  const look: Trays["storage"]["look"] = (path) => {
    const facts = trays.storage.look(path);
    const isClock = path.toString().startsWith(join(trays.tmp, "now-"));
    return facts === undefined || !isClock ? facts : { ...facts, mtimeMs: facts.mtimeMs + ms };
  };
  return { ...trays, storage: { ...trays.storage, look } };
}

it("what was refused is kept for its time from then on, however old the file was that somebody dropped", async () => {
  const trays = traysAhead(join(tempDir(), "mailbox"), 0);
  for (const name of ["precious.json", "lines.ndjson"]) {
    put(trays.inbox, name, 400 * DAY_MS);
    const marker = beginQuarantine(trays, {
      name,
      id: name.slice(0, name.indexOf(".")),
      code: "ErrInvalidTask",
      reason: "bad",
      isIdTaken: false,
    });
    if (marker !== undefined) await finishQuarantine(trays, marker);
  }
  const kept = fs.readdirSync(trays.failed);
  expect(kept).toHaveLength(4);
  const rules = { outboxDays: 7, failedDays: 30 };
  expect(sweepAll(later(trays, 29 * DAY_MS), rules).errors).toBe(0);
  expect(fs.readdirSync(trays.failed)).toEqual(kept);
  expect(sweepAll(later(trays, 31 * DAY_MS), rules).errors).toBe(4);
});

it("a settled batch is kept as long as its record, however old the file was that somebody dropped", async () => {
  const trays = traysAhead(join(tempDir(), "mailbox"), 0);
  put(trays.inbox, "b.ndjson", 400 * DAY_MS);
  const name = newSubmission(systemClock, "b", 1, true);
  accept(trays, name);
  const claim = claimReady(trays, name, "x-1");
  if (claim === undefined) throw new Error("not claimed");
  const settlement = newSettlement(claim, "completed", Buffer.from("{}"), "x-1");
  await settleAll(trays, [settlement], () => undefined);
  const kept = fs.readdirSync(trays.outbox);
  expect(kept).toEqual(["b_result.json", settledBatchName("b", name.submission)]);
  const rules = { outboxDays: 7, failedDays: 30 };
  expect(sweepAll(later(trays, 6 * DAY_MS), rules).results).toBe(0);
  expect(fs.readdirSync(trays.outbox)).toEqual(kept);
  expect(sweepAll(later(trays, 8 * DAY_MS), rules).results).toBe(2);
});

it("a whole pass leaves the results that waiting tasks depend on, in any case", () => {
  const trays = traysAhead(join(tempDir(), "mailbox"), 0);
  for (const id of ["A", "b", "c"]) put(trays.outbox, `${id}_result.json`, 8 * DAY_MS);
  const waiting = { title: "t", metadata: { dependencies: ["a", "b"] } };
  fs.writeFileSync(join(trays.inbox, "d.json"), JSON.stringify(waiting));
  put(trays.inbox, "torn.json", 0);
  const rules = { outboxDays: 7, failedDays: 30 };
  expect(sweepAll(trays, rules).results).toBe(1);
  expect(fs.readdirSync(trays.outbox)).toEqual(["A_result.json", "b_result.json"]);
  fs.rmSync(join(trays.inbox, "d.json"));
  expect(sweepAll(trays, rules).results).toBe(2);
});

it("a supervisor that starts with its clock ahead leaves what others are staging, and the logs of fresh runs", () => {
  const tree = stateTree(tempDir());
  const trays = traysAhead(tree.mailbox, 60 * DAY_MS);
  put(trays.tmp, "of-a-producer.json", 1000);
  const run = join(tree.runs, "a@s.1.x-1");
  const staged = join(tree.dir, ".tmp");
  for (const dir of [run, staged]) fs.mkdirSync(dir, { recursive: true });
  put(staged, "control.json", 1000);
  const { retention } = DEFAULT_SETTINGS;
  const scope = { tree, mailboxes: [trays], retention, clock: trays.clock };
  const checks = { isNeeded: () => false, isInPlan: () => undefined, onError: raise };
  const upkeep = new Cleaner(scope, checks);
  do upkeep.work(trays.clock.monotonicMs());
  while (upkeep.hasWork);
  expect(fs.readdirSync(trays.tmp)).toEqual(["of-a-producer.json"]);
  expect(fs.readdirSync(staged)).toEqual(["control.json"]);
  expect(fs.existsSync(run)).toBe(true);
});
