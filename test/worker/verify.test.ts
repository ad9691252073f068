/** Verify programs decide whether a task is done: under its lease, in its place, within its time. */
import fs from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { newPool } from "../support/pool.ts";
import { waitFor } from "../support/wait-for.ts";

describe("the verify programs of a task", () => {
  it("let it pass when they all exit with 0, each in the task's place with its variables", async () => {
    const pool = newPool();
    await pool.start();
    pool.drop("one", {
      exec: ["echo", "work"],
      verify: ["sh", "-c", "pwd; echo $MAILCHUTE_LEASE $A"],
      env: { A: "a" },
    });
    pool.drop("two", { exec: ["echo", "work"], verify: [["true"], ["echo", "a b"]] });
    pool.drop("none", { exec: ["echo", "work"], verify: [] });
    const { output, lease, run } = await pool.result("one");
    expect(output).toBe("work\n");
    const log = (name: unknown) => join(pool.state, "runs", String(name), "verify.log");
    expect(fs.readFileSync(log(run), "utf8")).toBe(
      `$ "sh" "-c" "pwd; echo $MAILCHUTE_LEASE $A"\n${pool.dir}\n${lease} a\n`,
    );
    const two = await pool.result("two");
    expect(fs.readFileSync(log(two.run), "utf8")).toBe('$ "true"\n$ "echo" "a b"\na b\n');
    expect(fs.existsSync(log((await pool.result("none")).run))).toBe(false);
  });

  it("write into no file that the task has linked in the place of their log", async () => {
    const pool = newPool();
    await pool.start();
    const target = join(pool.dir, "target");
    fs.writeFileSync(target, "precious");
    for (const [id, how] of [
      ["soft", "ln -s"],
      ["hard", "ln"],
    ] as const) {
      const plant = `${how} ${target} "$(dirname "$MAILCHUTE_RESULT_FILE")/verify.log"`;
      pool.drop(id, { exec: ["sh", "-c", plant], verify: ["echo", "fine"] });
      const { run } = await pool.result(id);
      const log = join(pool.state, "runs", String(run), "verify.log");
      expect(fs.readFileSync(log, "utf8")).toBe('$ "echo" "fine"\nfine\n');
    }
    expect(fs.readFileSync(target, "utf8")).toBe("precious");
  });

  it("fail it otherwise, with what they said, and it is retried by policy", async () => {
    const pool = newPool();
    await pool.start();
    const counter = join(pool.dir, "counter");
    pool.drop("second", {
      exec: ["sh", "-c", `echo x >> ${counter}`],
      verify: ["sh", "-c", `[ $(wc -l < ${counter}) -ge 2 ] || { echo only once; exit 3; }`],
    });
    expect(await pool.result("second")).toMatchObject({ attempts: 2 });
    pool.drop("never", {
      exec: ["true"],
      verify: [["false"], ["touch", join(pool.dir, "not")]],
      max_attempts: 2,
    });
    expect(await pool.error("never")).toMatchObject({
      kind: "verify",
      code: "ErrVerify",
      attempts: 2,
      exit_code: 1,
      error: 'verify[0]: "false" ended with exit code 1',
    });
    expect(fs.existsSync(join(pool.dir, "not"))).toBe(false);
    pool.drop("loud", {
      exec: ["true"],
      verify: ["sh", "-c", "echo what is wrong; exit 9"],
      max_attempts: 1,
    });
    expect((await pool.error("loud")).error).toMatch(
      /^what is wrong \(verify: "sh" ended with exit code 9\)$/,
    );
    pool.drop("missing", { exec: ["true"], verify: [["/nowhere/verify"]] });
    expect(await pool.error("missing")).toMatchObject({
      kind: "verify",
      attempts: 1,
      error: 'verify: cannot start "/nowhere/verify": ENOENT',
    });
  });

  it("are not asked when the run failed, and share its time limit", async () => {
    const pool = newPool();
    await pool.start();
    pool.drop("failed", {
      exec: ["false"],
      verify: ["touch", join(pool.dir, "not")],
      max_attempts: 1,
    });
    expect(await pool.error("failed")).toMatchObject({ kind: "exit" });
    expect(fs.existsSync(join(pool.dir, "not"))).toBe(false);
    pool.drop("slow", {
      exec: ["sleep", "0.3"],
      verify: ["sleep", "30"],
      timeout_ms: 600,
      max_attempts: 1,
    });
    const slow = await pool.error("slow");
    expect(slow).toMatchObject({
      kind: "timeout",
      error: "it ran longer than its limit of 600 ms",
    });
    const at = (name: string) =>
      pool.events().find((e) => e["event"] === name && e["task_id"] === "slow")?.["t"];
    expect(Number(at("failed")) - Number(at("started"))).toBeLessThan(20_000);
  });

  it("are stopped with their task, which is put back", async () => {
    const pool = newPool();
    await pool.start();
    const pidFile = join(pool.dir, "pid");
    pool.drop("long", { exec: ["true"], verify: ["sh", "-c", `echo $$ > ${pidFile}; sleep 60`] });
    const pid = await waitFor(
      () => (fs.existsSync(pidFile) ? Number(fs.readFileSync(pidFile, "utf8")) : 0),
      { what: "the verify program" },
    );
    await pool.stop();
    expect(() => process.kill(pid, 0)).toThrow();
    expect(fs.readdirSync(pool.processing).join()).toMatch(/^long@\w+\.1~ready\.json$/);
  });

  it("must be programs with arguments", async () => {
    const pool = newPool();
    await pool.start();
    for (const [id, verify] of Object.entries({
      text: "npm test",
      empty: [""],
      mixed: ["a", ["b"]],
      hollow: [[]],
    }))
      pool.drop(id, { exec: ["true"], verify });
    for (const id of ["text", "empty", "mixed", "hollow"]) {
      const { kind, error } = await pool.error(id);
      expect(kind).toBe("invalid");
      expect(error).toMatch(/^verify/);
    }
  });
});
