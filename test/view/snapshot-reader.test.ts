/** Snapshots one after the other: each tells what a fresh one would, and reads only what has changed. */
import fs from "node:fs";
import { join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { expect, onTestFinished, test } from "vitest";
import { ownerSequence } from "../../src/host/identity.ts";
import { SnapshotReader, takeSnapshot } from "../../src/view/snapshot-reader.ts";
import { seededRandom } from "../support/seeded-random.ts";
import { waitFor } from "../support/wait-for.ts";
import { fill, MANY, newTree, readsOf } from "./many-files.ts";

function newReader(tree: ReturnType<typeof newTree>): SnapshotReader {
  const reader = new SnapshotReader(tree);
  onTestFinished(() => reader.close());
  return reader;
}

/** What has changed within the last moment is read once more. */
const untilSettled = (tree: ReturnType<typeof newTree>): Promise<boolean> => {
  const dirs = ["inbox", "processing", "outbox", "failed"].map((tray) => join(tree.mailbox, tray));
  const isOld = (dir: string): boolean => Date.now() - fs.statSync(dir).ctimeMs > 60;
  return waitFor(() => dirs.every(isOld), { what: "the trays to be unchanged for a moment" });
};

test("each snapshot of a reader is what a fresh one would be, whatever has changed since the one before", async () => {
  const tree = newTree();
  const random = seededRandom(3);
  const owner = ownerSequence()();
  const files = [
    "inbox/a.json",
    "inbox/b.ndjson",
    "inbox/.hidden",
    "processing/c@abc.1~ready.json",
    "processing/d@abc.2~ready.json",
    `processing/e@abc.1~w-${owner}.json`,
    "processing/f@abc.1~again.json",
    "outbox/g_result.json",
    "outbox/h_result.json",
    "outbox/h_results.ndjson",
    "failed/i_error.json",
    "failed/j_error.json",
  ];
  const content = JSON.stringify({ error: "boom", batch: { lines: 2, failures: 1 } });
  const reader = newReader(tree);
  for (let round = 0; round < 300; round++) {
    const path = join(tree.mailbox, random.pick(files));
    if (fs.existsSync(path)) fs.rmSync(path);
    else {
      fs.writeFileSync(path, content);
      const dueMs = random() < 0.5 ? Date.now() - 10_000 : Date.now() + 100_000;
      if (path.includes("~ready")) fs.utimesSync(path, dueMs / 1000, dueMs / 1000);
    }
    fs.writeFileSync(tree.controlState, JSON.stringify({ paused: random() < 0.5 }));
    if (random() < 0.1) await untilSettled(tree);
    const nowMs = Date.now();
    // On a busy machine what took long to read is read again after a moment.
    await waitFor(
      () => {
        return isDeepStrictEqual(reader.next(nowMs), takeSnapshot(tree, nowMs));
      },
      { what: `the snapshot after a change of ${path}` },
    );
  }
});

test("a snapshot of very large trays that did not change reads no names, and only a few small files", async () => {
  const tree = newTree();
  fill(join(tree.mailbox, "outbox"), "_result.json", MANY);
  fill(join(tree.mailbox, "failed"), "_error.json", 20_000);
  fill(join(tree.mailbox, "processing"), "@abc.1~ready.json", 1000);
  await untilSettled(tree);
  const reader = newReader(tree);
  let looks = 0;
  let done = reader.next(Date.now()).counts.done;
  expect(done).toEqual({ count: 100_000, is_exact: false });
  while (!done.is_exact) {
    const reads = await readsOf(() => ({ done } = reader.next(Date.now()).counts));
    // Every few seconds the accepted tasks are looked at, too.
    expect(reads.names).toBeLessThanOrEqual(10_000 + 1000 + 2);
    looks++;
  }
  expect(done).toEqual({ count: MANY, is_exact: true });
  expect(looks).toBe(Math.floor((MANY - 100_000) / 10_000) + 1);
  const again = await readsOf(() => reader.next(1000));
  expect(again.names).toBeLessThanOrEqual(1000 + 1);
  const idle = await readsOf(() => reader.next(1001));
  expect(idle.names).toBe(0);
  expect(idle.stats).toBeLessThan(20);
  expect(idle.opened).toBeLessThan(10);
});

test("while a large tray is counted anew its old count is told, and that it is old", async () => {
  const tree = newTree();
  const outbox = join(tree.mailbox, "outbox");
  fill(outbox, "_result.json", 25_000);
  await untilSettled(tree);
  const reader = newReader(tree);
  const doneNow = () => reader.next(Date.now()).counts.done;
  expect(doneNow()).toEqual({ count: 25_000, is_exact: true });
  fs.writeFileSync(join(outbox, "new_result.json"), "{}");
  await untilSettled(tree);
  expect(doneNow()).toEqual({ count: 25_000, is_exact: false, is_old: true });
  expect(doneNow()).toEqual({ count: 25_000, is_exact: false, is_old: true });
  expect(doneNow()).toEqual({ count: 25_001, is_exact: true });
  // It changes again while it is counted.
  fs.writeFileSync(join(outbox, "newer_result.json"), "{}");
  doneNow();
  fs.rmSync(join(outbox, "newer_result.json"));
  await untilSettled(tree);
  for (let look = 0; look < 2; look++) expect(doneNow().is_exact).toBe(false);
  await waitFor(() => doneNow().is_exact, { what: "an exact count" });
  expect(doneNow().count).toBe(25_001);
});

test("a tray that cannot be read is an error at each look, and is counted once it can be read", () => {
  const tree = newTree();
  const outbox = join(tree.mailbox, "outbox");
  fs.writeFileSync(join(outbox, "a_result.json"), "{}");
  const reader = newReader(tree);
  reader.next(Date.now());
  fs.renameSync(outbox, `${outbox}.away`);
  fs.writeFileSync(outbox, "");
  for (let look = 0; look < 2; look++) expect(() => reader.next(Date.now())).toThrow("outbox");
  fs.rmSync(outbox);
  fs.renameSync(`${outbox}.away`, outbox);
  expect(reader.next(Date.now()).counts.done).toEqual({ count: 1, is_exact: true });
});
