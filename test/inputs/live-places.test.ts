/**
 * While a pool runs, something takes the place of one of its folders or files, and goes again: nothing of ours ends or hangs, and then
 * every task has ended once.
 */
import fs from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { newPool, type Pool, QUICK_CONFIG } from "../support/pool.ts";
import { waitFor } from "../support/wait-for.ts";
import { sampleOf } from "../support/walks.ts";
import { placesOfTree, put } from "./every-place.ts";

const NO_RIGHTS = "one that may not be read";
const KINDS = ["a pipe", "a link to /dev/zero", "nothing", NO_RIGHTS];
const CASES = placesOfTree()
  .filter((place) => !/^(?:config\.yaml|worktrees)/.test(place))
  .flatMap((place) => KINDS.map((kind) => ({ place, kind })));
const CONFIG = `${QUICK_CONFIG.replace("workers: 4", "workers: 2\nprocesses: 1")}on_success: {exec: ["true"]}\n`;
/** The longest time for which it stands there (ms): a pass of all looks. */
const STANDS_MS = 1500;

/** @returns a function that puts back what was there */
function replace(pool: Pool, kind: string, place: string): () => void {
  const path = join(pool.state, place);
  const before = join(pool.dir, "before");
  const stats = fs.lstatSync(path, { throwIfNoEntry: false });
  if (kind === NO_RIGHTS) {
    if (stats === undefined) return () => {};
    fs.chmodSync(path, 0);
    return () => fs.chmodSync(path, stats.isDirectory() ? 0o700 : 0o600);
  }
  if (stats !== undefined) fs.renameSync(path, before);
  if (kind !== "nothing") put(kind, path);
  return () => {
    const isMadeAnew = fs.lstatSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
    if (isMadeAnew && stats?.isDirectory() === true)
      fs.cpSync(before, path, { recursive: true, force: false, preserveTimestamps: true });
    else if (!isMadeAnew) {
      fs.rmSync(path, { force: true });
      if (stats !== undefined) fs.renameSync(before, path);
    }
  };
}

test.each(sampleOf(CASES, 3))(
  "$kind in the place of $place for a while",
  async ({ place, kind }) => {
    const uid = kind === NO_RIGHTS ? 65534 : undefined;
    const pool = newPool({ config: CONFIG, ...(uid === undefined ? {} : { uid }) });
    const drop = (id: string, task: object): void => {
      try {
        pool.drop(id, task as Record<string, unknown>);
        if (uid !== undefined) fs.chownSync(join(pool.inbox, `${id}.json`), uid, uid);
      } catch {
        // No inbox is there now.
      }
    };
    const running = await pool.start();
    const go = join(pool.dir, "go");
    const until = `until [ -e ${go} ]; do sleep 0.05; done`;
    drop("long-good", { exec: ["sh", "-c", until] });
    drop("long-bad", { exec: ["sh", "-c", `${until}; false`], max_attempts: 1 });
    await waitFor(
      () => fs.readdirSync(pool.processing).filter((name) => name.includes("~w-")).length === 2,
      { what: "two running tasks" },
    );
    const [worker] = pool.workers();
    const back = replace(pool, kind, place);
    drop("good", { exec: ["true"] });
    drop("bad", { exec: ["false"] });
    drop("late", { exec: ["true"], dependencies: ["good"] });
    fs.writeFileSync(go, "");
    const endMs = performance.now() + STANDS_MS;
    await waitFor(() => performance.now() > endMs, { what: "some looks" });
    if (worker !== undefined) killIfThere(worker.pid);
    back();
    drop("after", { exec: ["true"] });
    const records = ["after_result", "long-good_result", "long-bad_error"];
    const folders = [pool.outbox, pool.failed];
    const isThere = (record: string): boolean =>
      folders.some((dir) => fs.existsSync(join(dir, `${record}.json`)));
    await waitFor(() => records.every(isThere), { what: "the records", timeoutMs: 20_000 });
    expect(running.child.exitCode).toBe(null);
    expect(running.stderr()).not.toMatch(/\n {4}at |unexpected:/);
    const stop = await pool.run(["stop", "--timeout", "10s"]);
    expect(stop.code, stop.stderr).toBe(0);
  },
);

function killIfThere(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // It has ended by itself.
  }
}
