/** Two who are at one batch at once: none of them loses what a line has come to. Found by test/simulation; laid out by hand here. */
import fs from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { decodeRecord, encodeRecord } from "../../src/codec/records.ts";
import { leaseOf, parseName } from "../../src/core/names.ts";
import { thisPlace } from "../../src/host/identity.ts";
import { claimAt } from "../../src/mailbox/claim/claim.ts";
import { nodeStorage } from "../../src/mailbox/files/node-storage.ts";
import type { Storage } from "../../src/mailbox/files/storage.ts";
import { openTrays, type Trays } from "../../src/mailbox/files/trays.ts";
import { findRecoverable } from "../../src/mailbox/recover/find-recoverable.ts";
import { LeaseObserver } from "../../src/mailbox/recover/lease-observer.ts";
import { recoverStep } from "../../src/mailbox/recover/recover.ts";
import { finishRetry } from "../../src/mailbox/retry/retry.ts";
import { stagedResultsPath, takeOverResults } from "../../src/mailbox/settle/batch-results.ts";
import { tempDir } from "../support/temp-dir.ts";

const DEAD = `${thisPlace()}-zzzzz-1-1`;
const OTHER = `${thisPlace()}-zzzzz-1-2`;
const BATCH = '{"payload":1}\n{"payload":2}\n';
const DONE = '{"line":1,"id":"b#1","status":"completed","attempts":1}\n';
const WRONG = '{"line":2,"id":"b#2","status":"failed","attempts":1}\n';

const nameOf = (file: string) => {
  const name = parseName(file);
  if (name === undefined) throw new Error(`${file} is no name`);
  return name;
};
const HELD = nameOf(`b@s.1~w-${DEAD}.ndjson`);
const AGAIN = nameOf("b@t.0~again-x.ndjson");

function newTrays(storage: Storage = nodeStorage): Trays {
  return openTrays(tempDir(), { durability: "process", storage });
}

/** A settled batch whose record a retry has taken. */
function putRetried(trays: Trays): void {
  const counts = { lines: 2, completed: 1, failures: 1, bad: 0 };
  const record = encodeRecord(
    {
      task_id: "b",
      status: "completed",
      verdict: "fail",
      verdict_reason: "",
      output: null,
      duration_ms: 1,
      completed_at: 1,
      attempts: 1,
      agent_id: "batch",
      lease: `s.1.${DEAD}`,
      exit_code: null,
      run: null,
      batch: counts,
    },
    undefined,
  );
  fs.writeFileSync(join(trays.processing, "b@t.0~again-x.ndjson"), record);
  fs.writeFileSync(join(trays.outbox, "b_results.ndjson"), DONE + WRONG);
  fs.writeFileSync(join(trays.outbox, "b~s_batch.ndjson"), BATCH);
}

test("a retry waits for the marker of the settlement whose record it took: who recovers that would publish it once more", async () => {
  const trays = newTrays();
  putRetried(trays);
  const marker = join(trays.processing, `b@s.1~ok-${DEAD}.ndjson`);
  fs.linkSync(join(trays.outbox, "b~s_batch.ndjson"), marker);
  expect(await finishRetry(trays, AGAIN)).toBe("later");
  expect(fs.readdirSync(trays.outbox).sort()).toEqual(["b_results.ndjson", "b~s_batch.ndjson"]);
  fs.unlinkSync(marker);
  expect(await finishRetry(trays, AGAIN)).toBe("done");
  expect(fs.readdirSync(trays.processing)).toEqual(["b@t.1~ready.ndjson"]);
  expect(fs.readFileSync(stagedResultsPath(trays, AGAIN), "utf8")).toBe(DONE);
});

test("of two who finish one retry, the one who finds the old results gone leaves what the other has kept of them", async () => {
  let hasCome = false;
  const trays = newTrays({
    ...nodeStorage,
    look(path) {
      const facts = nodeStorage.look(path);
      if (!hasCome && String(path).endsWith("/outbox/b_results.ndjson")) {
        hasCome = true;
        fs.writeFileSync(stagedResultsPath(trays, AGAIN), DONE);
        fs.unlinkSync(String(path));
      }
      return facts;
    },
  });
  putRetried(trays);
  expect(await finishRetry(trays, AGAIN)).toBe("done");
  expect(hasCome).toBe(true);
  expect(fs.readFileSync(stagedResultsPath(trays, AGAIN), "utf8")).toBe(DONE);
  expect(fs.readdirSync(trays.tmp)).toHaveLength(1);
});

test("who has lost the lease tidies away nothing of what others have gathered since", async () => {
  const trays = newTrays();
  const theirs = join(trays.tmp, `b@s.1.${OTHER}_results.ndjson`);
  fs.writeFileSync(theirs, DONE);
  const results = await takeOverResults(trays, HELD, true);
  results.close();
  expect(results.counts.completed).toBe(1);
  expect(fs.existsSync(theirs)).toBe(true);

  fs.writeFileSync(claimAt(trays, HELD).path, BATCH);
  const again = await takeOverResults(trays, HELD, true);
  again.close();
  expect(fs.existsSync(theirs)).toBe(false);
});

test("who ends a batch in place of the dead takes its lease before it gathers the results", async () => {
  const gathered: boolean[] = [];
  const trays = newTrays({
    ...nodeStorage,
    rename(from, to) {
      if (String(from) === claimAt(trays, HELD).path)
        gathered.push(fs.existsSync(join(trays.tmp, `b@s.1.${OTHER}_results.ndjson`)));
      nodeStorage.rename(from, to);
    },
  });
  fs.writeFileSync(claimAt(trays, HELD).path, BATCH);
  fs.writeFileSync(stagedResultsPath(trays, HELD), DONE);
  const recoverer: Parameters<typeof findRecoverable>[0] = {
    trays,
    newOwner: () => OTHER,
    judge: () => "dead",
    observer: new LeaseObserver(1000),
    unfinished: new Set(),
    excused: new Map(),
    endLease: () => Promise.resolve(),
    policyOf: () => ({ maxAttempts: 1, agentId: "x" }),
    onRecovered: () => {},
    onSettled: () => {},
  };
  for (const step of findRecoverable(recoverer, fs.readdirSync(trays.processing), 60_000))
    await recoverStep(recoverer, step);
  expect(gathered).toEqual([false]);
  expect(recoverer.unfinished.size).toBe(0);
  expect(fs.readdirSync(trays.failed).sort()).toEqual([
    "b_error.json",
    "b_results.ndjson",
    "b~s_batch.ndjson",
  ]);
  const record = decodeRecord(fs.readFileSync(join(trays.failed, "b_error.json")))?.record;
  expect(record).toMatchObject({ lease: leaseOf(HELD), batch: { lines: 1, completed: 1 } });
  expect([...fs.readdirSync(trays.processing), ...fs.readdirSync(trays.tmp)]).toEqual([]);
});
