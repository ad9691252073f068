/**
 * What a power cut may leave on a file system that keeps the order of names within a directory only (btrfs): a record that lasts
 * where the steps before it do not. Each case is laid out by hand; test/simulation and `npm run test:power` search for more.
 */
import fs from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { encodeRecord } from "../../src/codec/records.ts";
import { ErrNoTasks, ErrTaskExists } from "../../src/core/errors.ts";
import type { ErrorRecord, ResultRecord } from "../../src/core/task.ts";
import { thisPlace } from "../../src/host/identity.ts";
import { Mailbox } from "../../src/library/mailbox.ts";
import { claimAt } from "../../src/mailbox/claim/claim.ts";
import { nodeStorage } from "../../src/mailbox/files/node-storage.ts";
import { openTrays, type Trays } from "../../src/mailbox/files/trays.ts";
import { retry } from "../../src/mailbox/retry/retry.ts";
import { newSettlement, settleAll } from "../../src/mailbox/settle/settle.ts";
import { newPool, type Pool, QUICK_CONFIG } from "../support/pool.ts";
import { steeredConfig, steps } from "../support/steered.ts";
import { tempDir } from "../support/temp-dir.ts";
import { waitFor } from "../support/wait-for.ts";

const DEAD = `${thisPlace()}-zzzzz-1-1`;
const BATCH = '{"payload":1}\n{"payload":2}\n';

function resultOf(id: string, more: Partial<ResultRecord> = {}): ResultRecord {
  return {
    task_id: id,
    status: "completed",
    verdict: "unknown",
    verdict_reason: "",
    output: null,
    duration_ms: 1,
    completed_at: Math.floor(Date.now() / 1000),
    attempts: 1,
    agent_id: "x",
    lease: `s.1.${DEAD}`,
    exit_code: 0,
    run: null,
    ...more,
  };
}

const BATCH_RECORD = encodeRecord(
  resultOf("b", { batch: { lines: 2, completed: 2, failures: 0, bad: 0 } }),
  undefined,
);

/** A batch that has settled, as the outbox has it. */
function putSettledBatch(outbox: string): void {
  const lines = [1, 2].map((line) =>
    JSON.stringify({ line, id: `b#${line}`, status: "completed", attempts: 1, duration_ms: 1 }),
  );
  fs.writeFileSync(join(outbox, "b_results.ndjson"), `${lines.join("\n")}\n`);
  fs.writeFileSync(join(outbox, "b~s_batch.ndjson"), BATCH);
  fs.writeFileSync(join(outbox, "b_result.json"), BATCH_RECORD);
}

const SETTLED = ["b_result.json", "b_results.ndjson", "b~s_batch.ndjson"];
const list = (dir: string): string[] => fs.readdirSync(dir).sort();

function newQuietPool(): Pool {
  const pool = newPool({ config: QUICK_CONFIG.replace("max_attempts: 3", "max_attempts: 1") });
  for (const dir of [pool.inbox, pool.processing, pool.outbox, pool.failed, pool.tmp])
    fs.mkdirSync(dir, { recursive: true, mode: 0o700 });
  return pool;
}

test.each([
  ["is in the inbox again", "inbox", "b.ndjson"],
  ["is accepted again", "processing", "b@s.1~ready.ndjson"],
  ["is claimed again in its last attempt", "processing", `b@s.1~w-${DEAD}.ndjson`],
] as const)(
  "a settled batch that %s after a power cut gets no error record, and goes",
  async (_what, tray, file) => {
    const pool = newQuietPool();
    putSettledBatch(pool.outbox);
    fs.writeFileSync(join(pool[tray], file), BATCH);
    fs.writeFileSync(join(pool.tmp, `b@s.1.${DEAD}_results.ndjson`), "");
    expect((await pool.run(["run", "--drain"])).code).toBe(0);
    expect(list(pool.outbox)).toEqual(SETTLED);
    expect([...list(pool.failed), ...list(pool.inbox), ...list(pool.processing)]).toEqual([]);
  },
);

test.each([
  ["accepted", "a@s.1~ready.json"],
  ["claimed in its last attempt", `a@s.1~w-${DEAD}.json`],
])(
  "a settled task that is again %s after a power cut is not run, and not settled again",
  async (_what, file) => {
    const pool = newQuietPool();
    const ran = join(pool.dir, "ran");
    const text = JSON.stringify({ id: "a", exec: ["touch", ran] });
    fs.writeFileSync(join(pool.outbox, "a_result.json"), encodeRecord(resultOf("a"), text));
    fs.writeFileSync(join(pool.processing, file), text);
    expect((await pool.run(["run", "--drain"])).code).toBe(0);
    expect(list(pool.outbox)).toEqual(["a_result.json"]);
    expect([...list(pool.failed), ...list(pool.processing)]).toEqual([]);
    expect(fs.existsSync(ran)).toBe(false);
  },
);

test("the library claims nothing that has a record of the same submission, and its recovery tidies it away", async () => {
  const dir = tempDir();
  const trays = openTrays(dir);
  const text = '{"id":"a","prompt":"x"}';
  fs.writeFileSync(join(trays.outbox, "a_result.json"), encodeRecord(resultOf("a"), text));
  fs.writeFileSync(join(trays.processing, "a@s.1~ready.json"), text);
  const mailbox = Mailbox.open(dir);
  expect(() => mailbox.claim()).toThrow(ErrNoTasks);
  expect(await mailbox.recover()).toMatchObject([{ action: "published", name: { id: "a" } }]);
  expect(list(trays.processing)).toEqual([]);
});

/** Storage that notes the names that are made and synced in `outbox/`. */
function watched(dir: string, steps: string[]): Trays {
  const name = (path: string): string => path.slice(path.lastIndexOf("/") + 1);
  return openTrays(dir, {
    durability: "power",
    storage: {
      ...nodeStorage,
      link(from, to) {
        nodeStorage.link(from, to);
        steps.push(name(to));
      },
      async syncDirs(paths) {
        await nodeStorage.syncDirs(paths);
        steps.push(`sync ${paths.map(name).join()}`);
      },
    },
  });
}

test("a batch has its second name in the outbox before its record has, and one sync is for both", async () => {
  const made: string[] = [];
  const trays = watched(tempDir(), made);
  const name = {
    id: "b",
    submission: "s",
    attempt: 1,
    stage: "w",
    token: DEAD,
    isBatch: true,
  } as const;
  const claim = claimAt(trays, name);
  fs.writeFileSync(claim.path, BATCH);
  fs.writeFileSync(join(trays.tmp, `b@s.1.${DEAD}_results.ndjson`), '{"line":1}\n{"line":2}\n');
  const settlement = newSettlement(claim, "completed", BATCH_RECORD, DEAD);
  await settleAll(trays, [settlement], () => {
    made.push("recorded");
  });
  expect(settlement.error).toBeUndefined();
  expect(made).toEqual([
    "b_results.ndjson",
    "b~s_batch.ndjson",
    "b_result.json",
    "sync outbox",
    "recorded",
  ]);
  expect([...list(trays.processing), ...list(trays.tmp)]).toEqual([]);
});

test("a batch whose marker is there still is not retried: its settler would take the old one for its own", async () => {
  const trays = openTrays(tempDir(), { durability: "process" });
  putSettledBatch(trays.outbox);
  const record = resultOf("b", { batch: { lines: 2, completed: 1, failures: 1, bad: 0 } });
  fs.writeFileSync(join(trays.outbox, "b_result.json"), encodeRecord(record, undefined));
  const marker = join(trays.processing, `b@s.1~ok-${DEAD}.ndjson`);
  fs.linkSync(join(trays.outbox, "b~s_batch.ndjson"), marker);
  await expect(retry(trays, "b")).rejects.toThrow(ErrTaskExists);
  expect(list(trays.outbox)).toEqual(SETTLED);
  fs.unlinkSync(marker);
  await retry(trays, "b");
  expect(list(trays.outbox)).toEqual([]);
});

test("a refused file that has two names while its retry waits for the disk is run, and not refused for that", async () => {
  const pool = newPool({ config: steeredConfig({ settle_ms: 20 }) });
  await pool.start();
  // Beyond its start, at which a supervisor finishes every retry at once.
  pool.drop("first", steps(pool, {}));
  await pool.result("first");
  const text = JSON.stringify({ id: "a", ...steps(pool, {}) });
  const error: ErrorRecord = {
    task_id: "a",
    status: "failed",
    error: "it was no task then",
    attempts: 0,
    last_attempt_at: 0,
    failed_at: 0,
    code: "ErrInvalidTask",
    kind: "invalid",
    agent_id: "",
    lease: "s.0.x",
    exit_code: null,
    signal: null,
    run: null,
    file: "failed/a~x.json",
  };
  fs.writeFileSync(join(pool.failed, "a~x.json"), text, { mode: 0o600 });
  fs.writeFileSync(join(pool.failed, "a_error.json"), encodeRecord(error, undefined));
  // Longer than a file must be quiet, and shorter than recovery waits before it finishes a retry.
  const slowMs = 500;
  const trays = openTrays(pool.mailbox, {
    durability: "power",
    storage: {
      ...nodeStorage,
      async syncDirs(paths) {
        const fromMs = performance.now();
        if (paths.includes(trays.inbox))
          await waitFor(() => performance.now() - fromMs > slowMs, { what: "a slow disk" });
        await nodeStorage.syncDirs(paths);
      },
    },
  });
  await retry(trays, "a");
  expect(await pool.result("a")).toMatchObject({ attempts: 1 });
  await pool.stop();
  expect(list(pool.failed)).toEqual([]);
});
