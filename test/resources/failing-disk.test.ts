/**
 * A device that begins to fail under a real file system: EIO, and soon a read-only mount. The short cases are in `npm test`; a pool on
 * such a disk, and its lock, are with `npm run test:resources`.
 */
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import { join } from "node:path";
import { afterAll, expect, it } from "vitest";
import { encodeRecord } from "../../src/codec/records.ts";
import { leaseOf, parseName } from "../../src/core/names.ts";
import { thisPlace } from "../../src/host/identity.ts";
import { claimFromInbox } from "../../src/mailbox/claim/claim.ts";
import { nodeStorage } from "../../src/mailbox/files/node-storage.ts";
import type { Storage } from "../../src/mailbox/files/storage.ts";
import { openTrays } from "../../src/mailbox/files/trays.ts";
import { newSettlement, settleAll } from "../../src/mailbox/settle/settle.ts";
import { submitAll } from "../../src/mailbox/submit/submit.ts";
import { SupervisorLock } from "../../src/supervisor/documents/supervisor-lock.ts";
import { checkState } from "../support/check-state.ts";
import { failingDisk, whyNoFailingDisk } from "../support/failing-disk.ts";
import { newPool, type Pool } from "../support/pool.ts";
import { smallDisk } from "../support/small-disk.ts";
import { waitFor } from "../support/wait-for.ts";
import { IS_WHOLE } from "../support/walks.ts";

const WHY_NOT = whyNoFailingDisk();
const OWNER = `${thisPlace()}-zzzzz-1-1`;
/** A pool that tries again and again what cannot be done takes all of a processor. */
const BUSY_MAX = 0.5;
/** Longer than the disk may refuse a lock before it looks forsaken. */
const WATCHED_MS = 15_000;
const TICKS_PER_S = 100;

const passTime = async (): Promise<void> => {
  const fromMs = performance.now();
  await waitFor(() => performance.now() - fromMs > WATCHED_MS, {
    what: "some time",
    timeoutMs: 2 * WATCHED_MS,
  });
};

let table = "";
if (WHY_NOT !== undefined)
  process.stderr.write(`\nSKIPPED: a disk that fails cannot be tried here: ${WHY_NOT}\n`);
afterAll(() => {
  if (IS_WHOLE) process.stdout.write(`resources: a failing disk: ${WHY_NOT ?? table}\n`);
});

const taskOf = (id: string, seconds: number): { id: string; bytes: Buffer } => ({
  id,
  bytes: Buffer.from(`${JSON.stringify({ id, exec: ["sleep", String(seconds)] })}\n`),
});

/** Sends a task, or settles one, on a disk that fails. @returns what was acknowledged, and what of that is not there once it is mended */
async function tellWhileFailing(
  what: "send" | "settle",
  storage: Storage,
): Promise<{ told: string[]; lost: string[] }> {
  const disk = failingDisk();
  const trays = openTrays(join(disk.dir, "mailbox"), { storage, durability: "power" });
  const told = new Set(["held", "waits"].map((id) => `${id} is safe`));
  await submitAll(trays, [taskOf("held", 0), taskOf("waits", 0)]);
  const claim = claimFromInbox(trays, "held", 1, OWNER);
  if (claim === undefined) throw new Error("nothing was claimed");
  const record = {
    task_id: "held",
    status: "completed" as const,
    verdict: "unknown",
    verdict_reason: "",
    output: null,
    duration_ms: 1,
    completed_at: 1,
    attempts: 1,
    agent_id: "x",
    lease: leaseOf(claim.name),
    exit_code: 0,
    run: null,
  };
  const bytes = encodeRecord(record, taskOf("held", 0).bytes.toString().trim());
  disk.fail();
  if (what === "send") {
    const [sent] = await submitAll(trays, [taskOf("sent", 0)]);
    if (sent?.outcome !== "refused") told.add("sent is safe");
  } else {
    await settleAll(trays, [newSettlement(claim, "completed", bytes, OWNER)], () => {
      told.add("held has settled");
    });
  }
  await disk.mend();
  const files = ["inbox", "processing", "outbox"].flatMap((tray) =>
    fs.readdirSync(join(trays.dir, tray)).map((file) => join(trays.dir, tray, file)),
  );
  const isIn = (tray: string, content: Buffer): boolean =>
    files.some((path) => path.includes(tray) && fs.readFileSync(path).equals(content));
  const isThere: Record<string, boolean> = {
    "held is safe": isIn("", taskOf("held", 0).bytes) || isIn("/outbox/", bytes),
    "waits is safe": isIn("/inbox/", taskOf("waits", 0).bytes),
    "sent is safe": isIn("/inbox/", taskOf("sent", 0).bytes),
    "held has settled": isIn("/outbox/", bytes),
  };
  return { told: [...told], lost: [...told].filter((each) => isThere[each] !== true) };
}

it.skipIf(WHY_NOT !== undefined).each(["send", "settle"] as const)(
  "to %s on a disk that fails is not acknowledged, and what was acknowledged before is there when it is mended",
  async (what) => {
    expect(await tellWhileFailing(what, nodeStorage)).toEqual({
      told: ["held is safe", "waits is safe"],
      lost: [],
    });
  },
);

it.skipIf(WHY_NOT !== undefined).each([
  ["send", "sent is safe"],
  ["settle", "held has settled"],
] as const)(
  "a storage whose syncs swallow errors is caught when it is to %s",
  async (what, lie) => {
    const swallow = (): void => {};
    const { lost } = await tellWhileFailing(what, {
      ...nodeStorage,
      syncFiles: (paths) => nodeStorage.syncFiles(paths).catch(swallow),
      syncDirs: (paths) => nodeStorage.syncDirs(paths).catch(swallow),
    });
    expect(lost).toContain(lie);
  },
);

const CONFIG = `
durability: power
workers: 2
settle_ms: 300
sweep_ms: 200
grace_ms: 500
heartbeat_ms: 500
retry: {max_attempts: 2, backoff_ms: 50, backoff_max_ms: 500}
`;

/** The state tree lies on that disk, and only that. */
function poolOn(dir: string): Pool {
  const pool = newPool({ config: CONFIG });
  const state = join(dir, "state");
  fs.cpSync(pool.state, state, { recursive: true });
  fs.rmSync(pool.state, { recursive: true });
  fs.symlinkSync(state, pool.state);
  return pool;
}

/** It takes no change; what is open to read may stay so. */
function remount(dir: string, how: "ro" | "rw"): void {
  execFileSync("mount", ["-o", `remount,${how}`, dir], { stdio: "pipe" });
}

it.skipIf(WHY_NOT !== undefined || !IS_WHOLE)(
  "the lock of a supervisor is not lost while the disk refuses to renew it, unless another renews it then",
  async () => {
    const open = async (): Promise<{ dir: string; path: string; lock: SupervisorLock }> => {
      const { dir } = smallDisk();
      const lock = await SupervisorLock.acquire(dir, join(dir, "supervisor.json"));
      return { dir, path: join(dir, "supervisor.lock"), lock };
    };
    const kept = await open();
    const robbed = await open();
    const before = fs.statSync(kept.path).mtimeMs;
    for (const { dir } of [kept, robbed]) remount(dir, "ro");
    await passTime();
    expect([kept.lock.isCompromised, robbed.lock.isCompromised]).toEqual([false, false]);
    for (const { dir } of [kept, robbed]) remount(dir, "rw");
    const renew = (): boolean => {
      fs.utimesSync(robbed.path, new Date(), new Date());
      return robbed.lock.isCompromised;
    };
    await waitFor(renew, { what: "the loss of the other" });
    await waitFor(() => fs.statSync(kept.path).mtimeMs > before + WATCHED_MS, {
      what: "the lock to be renewed",
    });
    expect(kept.lock.isCompromised).toBe(false);
    await kept.lock.free();
    expect(fs.existsSync(kept.path)).toBe(false);
  },
);

/** Processor time of all these processes so far (s). */
function busyS(pids: readonly number[]): number {
  let ticks = 0;
  for (const pid of pids) {
    try {
      const stat = fs.readFileSync(`/proc/${pid}/stat`, "latin1");
      const [user, system] = stat
        .slice(stat.lastIndexOf(")") + 2)
        .split(" ")
        .slice(11, 13);
      ticks += Number(user) + Number(system);
    } catch {
      // It has ended.
    }
  }
  return ticks / TICKS_PER_S;
}

it.skipIf(WHY_NOT !== undefined || !IS_WHOLE)(
  "a pool whose disk fails says so, stays, does not spin, and brings all to the end once it is mended",
  async () => {
    const disk = failingDisk();
    const pool = poolOn(disk.dir);
    const running = await pool.start();
    const trays = openTrays(pool.mailbox, { durability: "power" });
    const early = ["a", "b", "c"];
    const late = ["d", "e", "f", "g", "h", "i"];
    const send = (ids: readonly string[], seconds: number) =>
      submitAll(
        trays,
        ids.map((id) => taskOf(id, seconds)),
      );
    await send(early, 0.01);
    const records = new Map<string, Buffer>();
    for (const id of early) {
      await pool.result(id);
      records.set(id, fs.readFileSync(join(pool.outbox, `${id}_result.json`)));
    }
    await send(late, 0.5);
    const isRunning = (): boolean =>
      fs.readdirSync(pool.processing).some((file) => parseName(file)?.stage === "w");
    await waitFor(isRunning, { what: "a claim" });

    disk.fail();
    await waitFor(() => /\bE(?:IO|ROFS)\b/.test(running.stderr()), { what: "a word of the disk" });
    await waitFor(() => disk.isReadOnly(), { what: "a read-only disk" });
    const fromMs = performance.now();
    const fromS = busyS(pool.pids());
    await passTime();
    const busy = (busyS(pool.pids()) - fromS) / ((performance.now() - fromMs) / 1000);
    expect(busy).toBeLessThan(BUSY_MAX);
    expect([running.child.exitCode, running.stdout()]).toEqual([null, ""]);
    const used = fs.readdirSync(pool.processing).map((file) => parseName(file)?.attempt);
    expect(used.filter((attempt) => attempt !== 1)).toEqual([]);

    // What has run and cannot be settled is held as long as the disk may come back.
    await pool.killAll();
    await disk.mend();
    for (const [id, record] of records)
      expect(fs.readFileSync(join(pool.outbox, `${id}_result.json`)).equals(record)).toBe(true);
    expect((await pool.run(["run", "--drain"])).code).toBe(0);

    expect(pool.errors()).toEqual([]);
    // Of two slots, what ran when the pool was stopped has run twice.
    const again = pool.results().filter(({ attempts }) => attempts !== 1);
    expect(again.length).toBeLessThanOrEqual(2);
    expect(again.filter(({ attempts }) => attempts > 2)).toEqual([]);
    const ids = [...early, ...late];
    expect(checkState(pool.state, ids, { hadCrashes: true, lostJournals: true })).toEqual([]);
    const word =
      running
        .stderr()
        .split("\n")
        .find((line) => /\bE(?:IO|ROFS)\b/.test(line)) ?? "";
    table = `${records.size} records kept, ${late.length} tasks brought to their end, ${Math.round(100 * busy)} % of a processor while it failed; the pool said: ${word}`;
  },
);
