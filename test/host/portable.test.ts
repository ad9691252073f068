/** A pool on a portable host: kills, cancels and takes back whole trees, and opens nothing of `/proc`. */
import fs from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { isGone } from "../../src/host/identity.ts";
import { newPool, type Pool } from "../support/pool.ts";
import { waitFor } from "../support/wait-for.ts";

const HOOK = fileURLToPath(new URL("../fixtures/note-proc.cjs", import.meta.url));
/** A child, and one in a session of its own, whose parent ends. */
const FAMILY = "sleep 600 & (setsid sleep 600 &) ; wait";
/** Shows no variables, as programs of macOS do, and tells of its child in a file. */
const hidden = (file: string) => `exec env -i sh -c 'sleep 600 & echo $! > ${file}; wait'`;

function notedPool(host: string): Pool & { uses: () => string; notes: () => string[] } {
  let notes = "";
  let user = "";
  const pool = newPool({
    env: {
      MAILCHUTE_HOST: host,
      NODE_OPTIONS: `--require=${HOOK}`,
      get NOTE_PROC() {
        return notes;
      },
      get XDG_STATE_HOME() {
        return user;
      },
    },
  });
  notes = join(pool.dir, "uses");
  user = join(pool.dir, "user");
  const running = join(user, "mailchute", "running");
  const isWritten = (pid: string) => fs.statSync(join(running, pid)).size > 0;
  return {
    ...pool,
    uses: () => (fs.existsSync(notes) ? fs.readFileSync(notes, "utf8") : ""),
    /** The pids of the programs that are noted as running. A note that is still empty does not count. */
    notes: () => (fs.existsSync(running) ? fs.readdirSync(running) : []).filter(isWritten),
  };
}

/** How many processes of the pool there are beside the supervisor and its workers. */
const programs = (pool: Pool): number => pool.pids().length - 1 - pool.workers().length;

describe("a portable host", () => {
  it("cancels a whole tree, takes a task back from a killed worker, and uses no /proc", async () => {
    const pool = notedPool("portable");
    await pool.start(["--workers", "2", "--processes", "1"]);
    pool.drop("cancelled", { exec: ["sh", "-c", FAMILY] });
    await waitFor(() => programs(pool) === 3, { what: "the family" });
    expect(await pool.run(["cancel", "cancelled"])).toMatchObject({ code: 0 });
    expect(await pool.error("cancelled")).toMatchObject({ kind: "cancelled" });
    expect(programs(pool)).toBe(0);

    const mark = join(pool.dir, "mark");
    const script = `[ -e ${mark} ] || { touch ${mark}; ${FAMILY}; }; echo again`;
    pool.drop("recovered", { exec: ["sh", "-c", script] });
    await waitFor(() => programs(pool) === 3, { what: "the family again" });
    const [worker] = pool.workers();
    process.kill(worker?.pid ?? 0, "SIGKILL");
    expect(await pool.result("recovered")).toMatchObject({ output: "again\n", attempts: 2 });
    expect(programs(pool)).toBe(0);
    expect(pool.uses()).toBe("");
  });

  it("finds a program whose variables are hidden, after the death of its worker", async () => {
    const pool = notedPool("portable");
    await pool.start(["--workers", "1"]);
    const file = join(pool.dir, "child");
    const script = `[ -e ${file} ] || ${hidden(file)}; echo again`;
    pool.drop("hidden", { exec: ["sh", "-c", script] });
    const child = await waitFor(() => Number(fs.existsSync(file) && fs.readFileSync(file)), {
      what: "its child",
    });
    // Without the note it is not found: the worker writes it when the program has started already.
    await waitFor(() => pool.notes().length > 0, { what: "the note of its program" });
    for (const { pid } of pool.workers()) process.kill(pid, "SIGKILL");
    expect(await pool.result("hidden")).toMatchObject({ output: "again\n", attempts: 2 });
    expect(programs(pool)).toBe(0);
    expect(isGone(child)).toBe(true);

    for (const verb of ["status", "ls", "doctor"])
      expect((await pool.run([verb])).stderr).not.toContain("Err");
    expect((await pool.stop()).exitCode).toBe(0);
    expect(pool.uses()).toBe("");
  });

  it("is not the one of Linux, whose uses of /proc are noticed", async () => {
    const pool = notedPool("proc");
    await pool.run(["run", "--drain"]);
    expect(pool.uses()).toContain("/proc/");
  });

  it("that is called by another name is refused", async () => {
    const pool = newPool({ env: { MAILCHUTE_HOST: "mac" } });
    const { code, stderr } = await pool.run(["run", "--drain"]);
    expect(stderr).toContain("MAILCHUTE_HOST must be proc or portable");
    expect(code).toBe(78);
  });
});
