/** The history of kv where it was rotated: nothing that kv needs of it is lost. */
import fs from "node:fs";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { kvHistoryOf } from "../../src/core/state-tree.ts";
import { systemClock } from "../../src/host/system-clock.ts";
import { rotate } from "../../src/journal/journal.ts";
import { KvHistory } from "../../src/kv/history.ts";
import { KvStore } from "../../src/kv/store.ts";
import { tempDir } from "../support/temp-dir.ts";

const source = (lease: string | null) => ({ run: null, lease, attempt: 1, by: "test" });

it("values come back from it, all of it is read, and a run of an earlier submission is refused, over a rotation", async () => {
  const kv = tempDir();
  const store = new KvStore(kv, systemClock, "process");
  onTestFinished(() => store.close());
  await store.put("a", "first", 1, source("s.1.x"));
  await store.put("a", "second", 2, source("t.1.x"));
  expect(rotate(kvHistoryOf({ kv }), 0, Date.UTC(2026, 0, 1))).toBeDefined();
  const after = new KvStore(kv, systemClock, "process");
  onTestFinished(() => after.close());
  await after.put("a", "third", 3, source("t.1.x"));
  expect(
    fs
      .readdirSync(kv)
      .filter((name) => name.startsWith("history"))
      .sort(),
  ).toEqual(["history.2026-01-01T00-00-00-000Z.jsonl", "history.jsonl"]);
  fs.writeFileSync(join(kv, "a.json"), "torn");
  expect(Object.fromEntries([...after.list("a")].map(([key, { value }]) => [key, value]))).toEqual({
    first: 1,
    second: 2,
    third: 3,
  });
  const records: string[] = [];
  for await (const { key } of after.history()) records.push(key);
  expect(records).toEqual(["first", "second", "third"]);
  await expect(after.put("a", "late", 4, source("s.1.x"))).rejects.toMatchObject({
    code: "ErrLeaseLost",
  });
});

it("what came since a mark is told also when the history was rotated in between", () => {
  const kv = tempDir();
  const path = kvHistoryOf({ kv });
  const write = (key: string): void =>
    fs.appendFileSync(
      path,
      `${JSON.stringify({ node: "a", key, op: "put", value: 1, t: 1, run: null, lease: null, attempt: 1, by: "x" })}\n`,
    );
  write("before");
  const history = new KvHistory(kv);
  const mark = history.mark();
  write("since");
  rotate(path, 0, Date.now());
  write("later");
  expect(history.since("a", mark).map(({ key }) => key)).toEqual(["since", "later"]);
  expect(history.since("a").map(({ key }) => key)).toEqual(["before", "since", "later"]);
});
