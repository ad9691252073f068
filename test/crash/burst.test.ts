/** Many files at once, a tray that disappears, and a system that gives no watches: what was dropped is found. */
import { execFileSync, spawn } from "node:child_process";
import fs from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { checkState } from "../support/check-state.ts";
import { newPool, type Pool } from "../support/pool.ts";
import { steeredConfig } from "../support/steered.ts";
import { timeLimitMs } from "../support/time-limit.ts";
import { waitFor } from "../support/wait-for.ts";

const LAUNCHER = fileURLToPath(new URL("../../bin/mailchute.js", import.meta.url));
/** More than the kernel keeps for a watcher that does not read (fs.inotify.max_queued_events, 16,384). */
const BURST = 20_000;
/** So many of them are waited for: that all are found is told by the count of what waits. */
const RUN = 1000;

it("finds 20,000 files that were renamed in while its event loop stood still", async () => {
  const pool = newPool({ config: steeredConfig() });
  const supervisor = await pool.start(["--workers", "2", "--processes", "2"]);
  // It has settled something: its first scan is over, and it lives by events and sweeps from here on.
  pool.drop("first", { prompt: "x" });
  await pool.result("first");
  expect((await pool.run(["pause", "--wait"])).code).toBe(0);
  const staging = join(pool.dir, "staging");
  fs.mkdirSync(staging);
  const ids = Array.from({ length: BURST }, (_, n) => `t-${String(n).padStart(5, "0")}`);
  for (const id of ids) fs.writeFileSync(join(staging, `${id}.json`), `{"prompt":"x"}`);

  process.kill(supervisor.pid, "SIGSTOP");
  for (const id of ids) fs.renameSync(join(staging, `${id}.json`), join(pool.inbox, `${id}.json`));
  process.kill(supervisor.pid, "SIGCONT");

  await waitFor(() => pool.supervisor()?.waiting.runnable === BURST, {
    timeoutMs: 120_000,
    what: `${BURST} tasks that wait`,
  });
  expect((await pool.run(["resume", "--wait"])).code).toBe(0);
  await waitFor(() => pool.settledCount() > RUN, { timeoutMs: 60_000, what: `${RUN} results` });
  await pool.stop();
  expect(checkState(pool.state, ["first", ...ids], { isDrained: false })).toEqual([]);
});

it("works on after the inbox was removed, made again or not", async () => {
  const pool = newPool({ config: steeredConfig() });
  await pool.start();
  pool.drop("before", { prompt: "x" });
  await pool.result("before");

  fs.rmSync(pool.inbox, { recursive: true });
  fs.mkdirSync(pool.inbox, { recursive: true });
  pool.drop("made-again", { prompt: "x" });
  await pool.result("made-again", 3000);
  // The new directory is watched like the old one: this one does not wait for a sweep.
  await isWatched(pool);

  fs.rmSync(pool.inbox, { recursive: true });
  await waitFor(() => fs.existsSync(pool.inbox), { what: "a new inbox", timeoutMs: 3000 });
  pool.drop("not-made-again", { prompt: "x" });
  await pool.result("not-made-again", 3000);

  const enqueued = await pool.run(["enqueue", "--id", "enqueued", "--", "true"]);
  expect(enqueued.code).toBe(0);
  await pool.result("enqueued");
  await pool.stop();
  const results = pool.results().map((r) => r.task_id);
  for (const id of ["before", "made-again", "not-made-again", "enqueued"])
    expect(results).toContain(id);
  expect(checkState(pool.state, results)).toEqual([]);
});

/** Waits until a dropped file is taken far quicker than by the next sweep (which comes every 200 ms or later). */
async function isWatched(pool: Pool): Promise<void> {
  let n = 0;
  await waitFor(
    async () => {
      const id = `quick-${n++}`;
      const before = performance.now();
      pool.drop(id, { prompt: "x" });
      await pool.result(id);
      return performance.now() - before < timeLimitMs(60);
    },
    { what: "a file that is taken at once", timeoutMs: 5000 },
  );
}

/** A user namespace in which no directory can be watched. */
const NO_WATCHES = ["unshare", "-Ur", "sh", "-c"];
const LIMIT = 'echo 0 > /proc/sys/user/max_inotify_watches && exec "$@"';

function canLimitWatches(): boolean {
  try {
    execFileSync(NO_WATCHES[0] ?? "", [...NO_WATCHES.slice(1), LIMIT, "sh", "true"], {
      stdio: "pipe",
    });
    return true;
  } catch {
    process.stderr.write("\nSKIPPED: tests without inotify watches need user namespaces\n");
    return false;
  }
}

it.skipIf(!canLimitWatches())("polls where no watch can be had, and says so", async () => {
  const pool = newPool({ config: steeredConfig({ sweep_ms: 30_000 }) });
  const args = [...NO_WATCHES.slice(1), LIMIT, "sh", process.execPath, LAUNCHER];
  const child = spawn(NO_WATCHES[0] ?? "", [...args, "run", "--state", pool.state], {
    stdio: ["ignore", "ignore", "pipe"],
  });
  let stderr = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    stderr += text;
  });
  await waitFor(() => pool.supervisor()?.watching === "polling", { what: "polling" });
  expect(stderr).toContain("polling instead");
  expect(pool.alerts()).toContainEqual(expect.objectContaining({ alert: "polling" }));
  await waitFor(() => pool.workers().length > 0, { what: "a worker" });
  for (const id of ["one", "two", "three"]) {
    const before = performance.now();
    pool.drop(id, { prompt: "x" });
    await pool.result(id);
    expect(performance.now() - before, "ms until it was found").toBeLessThan(timeLimitMs(1000));
  }
  const status = await pool.run(["status"]);
  expect(status.stdout).toMatch(/poll/);
  child.kill("SIGTERM");
  await waitFor(() => pool.pids().length === 0, { what: "its end" });
  expect(checkState(pool.state, ["one", "two", "three"])).toEqual([]);
});
