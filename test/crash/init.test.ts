/** As pid 1 of a container: `run` leaves no zombies, hands signals on, and ends with the code of what it started. */
import { spawnSync } from "node:child_process";
import fs from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { checkState } from "../support/check-state.ts";
import { newPool } from "../support/pool.ts";
import { waitFor } from "../support/wait-for.ts";

const LAUNCHER = fileURLToPath(new URL("../../bin/mailchute.js", import.meta.url));
const UNSHARE = ["unshare", "--fork", "--pid", "--mount-proc", "--kill-child"];

function canUnshare(): boolean {
  const [program = "", ...args] = UNSHARE;
  const isThere =
    process.platform === "linux" && spawnSync(program, [...args, "true"]).status === 0;
  if (!isThere)
    process.stderr.write("\nSKIPPED: tests of pid 1 need root and unshare (a pid namespace)\n");
  return isThere;
}

interface Row {
  pid: number;
  parent: number;
  isZombie: boolean;
}

function processTable(): Row[] {
  return fs.readdirSync("/proc").flatMap((name) => {
    try {
      const stat = fs.readFileSync(`/proc/${Number(name)}/stat`, "latin1");
      const [state, parent] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
      return [{ pid: Number(name), parent: Number(parent), isZombie: state === "Z" }];
    } catch {
      return [];
    }
  });
}

/** What descends from this process, as the whole machine sees it. */
function below(pid: number): Row[] {
  const rows = processTable();
  const found = rows.filter(({ parent }) => parent === pid);
  for (const { pid: parent } of found) found.push(...rows.filter((row) => row.parent === parent));
  return found;
}

describe.skipIf(!canUnshare())("as pid 1 of a container", () => {
  it("what programs leave behind becomes no zombie", async () => {
    const pool = newPool({ prefix: UNSHARE });
    const ids = Array.from({ length: 12 }, (_, n) => `t-${n}`);
    // Of each a child is left, of which nobody but pid 1 is told when it ends.
    for (const id of ids) pool.drop(id, { exec: ["sh", "-c", "sleep 60 & exit 0"] });
    const run = pool.spawn(["run", "--workers", "4"]);
    for (const id of ids) await pool.result(id);
    const zombies = (): number => below(run.pid).filter(({ isZombie }) => isZombie).length;
    await waitFor(() => zombies() === 0, { what: "the end of all that the programs left" });
    expect(below(run.pid).length).toBeGreaterThan(2);
    // Its child by unshare is pid 1 in there: who stops a container sends it SIGTERM.
    const [init] = below(run.pid);
    process.kill(init?.pid ?? 0, "SIGTERM");
    expect(await run.ended).toEqual({ exitCode: 0, signal: null });
    expect(run.stderr()).toContain("stopping: running tasks are given back");
    expect(checkState(pool.state, ids)).toEqual([]);
  });

  it("run ends with the exit code of what it started, and with 137 when that was killed", async () => {
    const pool = newPool({ prefix: UNSHARE });
    pool.drop("bad", { exec: ["false"], max_attempts: 1 });
    expect((await pool.run(["run", "--drain"])).code).toBe(1);
    const killed = newPool({ prefix: UNSHARE });
    const run = killed.spawn(["run"]);
    await waitFor(() => below(run.pid).length >= 4, { what: "a worker" });
    // unshare, pid 1, what adopts, the supervisor.
    const supervisor = below(run.pid)[2];
    process.kill(supervisor?.pid ?? 0, "SIGKILL");
    expect((await run.ended).exitCode).toBe(137);
  });

  it("SIGINT to pid 1 reaches the supervisor once: what runs is given back", async () => {
    const pool = newPool({ prefix: UNSHARE });
    const started = `${pool.dir}/started`;
    pool.drop("long", { exec: ["sh", "-c", `touch ${started}; sleep 60`] });
    const run = pool.spawn(["run"]);
    await waitFor(() => fs.existsSync(started), { what: "its run" });
    const [init] = below(run.pid);
    process.kill(init?.pid ?? 0, "SIGINT");
    expect((await run.ended).exitCode).toBe(130);
    expect(fs.readdirSync(pool.processing)).toEqual([
      expect.stringMatching(/^long@\w+\.1~ready\.json$/),
    ]);
  });

  it("says what to do where nothing can adopt what is left", () => {
    const pool = newPool();
    const [program, ...args] = [...UNSHARE, "/usr/bin/env", "PATH=/nowhere"];
    const command = [process.execPath, LAUNCHER, "run", "--drain", "--state", pool.state];
    const { stderr, status } = spawnSync(program, [...args, ...command], { encoding: "utf8" });
    expect(stderr).toContain("Start it with --init (docker), or install tini or perl");
    expect(status).toBe(0);
  });
});
