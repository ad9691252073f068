/** `kv`: from outside anything goes; inside a task its own keys and those of the run, while it holds its task. */
import fs from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { newPool } from "../support/pool.ts";
import { newCli } from "./run-cli.ts";

describe("kv", () => {
  it("gets what was put: texts as they are, other values as JSON", async () => {
    const cli = newCli();
    await cli(["init"]);
    expect(await cli(["kv", "get", "a", "k"])).toMatchObject({ code: 3, stdout: "" });
    expect(await cli(["kv", "ls", "a"])).toMatchObject({ code: 3 });
    expect(await cli(["kv", "put", "a", "k", "0012"])).toMatchObject({ code: 0, stdout: "" });
    expect(await cli(["kv", "get", "a", "k"])).toMatchObject({ code: 0, stdout: "0012\n" });
    await cli(["kv", "put", "a", "list", "[1, 2]", "--json-value"]);
    expect((await cli(["kv", "get", "a", "list"])).stdout).toBe("[1,2]\n");
    await cli(["kv", "put", "__run__", "ctx.long", "-"], { input: "from\nstdin" });
    const read = await cli(["kv", "get", "__run__", "ctx.long", "--json"]);
    expect(JSON.parse(read.stdout)).toMatchObject({
      node: "__run__",
      key: "ctx.long",
      value: "from\nstdin",
      by: "cli",
      lease: null,
    });
    await cli(["kv", "put", "a", "k", "again"]);
    const history = JSON.parse((await cli(["kv", "ls", "a", "--history", "--json"])).stdout);
    expect(history.history.map((one: { value: unknown }) => one.value)).toEqual([
      "0012",
      [1, 2],
      "again",
    ]);
    expect((await cli(["kv", "ls", "a"])).stdout).toMatch(/^KEY +VALUE.*\nk +again +cli/);
  });

  it("says what is wrong with a bad call", async () => {
    const cli = newCli();
    expect(await cli(["kv", "ls", "a"])).toMatchObject({ code: 3 });
    await cli(["init"]);
    for (const args of [
      ["kv", "get", "a"],
      ["kv", "put", "a", "k"],
      ["kv", "ls", "a", "b"],
      ["kv", "get", "../a", "k"],
      ["kv", "put", "a", "b c", "v"],
      ["kv", "put", "a", "k", "{", "--json-value"],
      ["kv", "get", "a", "k", "--history"],
    ]) {
      const { code, stderr } = await cli(args);
      expect(code, args.join(" ")).toBe(2);
      expect(stderr, args.join(" ")).toMatch(/^mailchute: Err(?:Usage|InvalidKv): /);
    }
  });

  it("inside a task writes its own keys and those of the run, and none of another node", async () => {
    const pool = newPool();
    const script = `
      "$NODE" "$CLI" kv put "$MAILCHUTE_TASK_ID" mine yes || exit 10
      "$NODE" "$CLI" kv put __run__ ctx.shared yes || exit 11
      "$NODE" "$CLI" kv put other theirs no; [ $? = 4 ] || exit 12
      "$NODE" "$CLI" kv get other theirs; [ $? = 3 ] || exit 13
      printf .gone >> "$(dirname "$MAILCHUTE_RESULT_FILE")/claim"
      "$NODE" "$CLI" kv put __run__ ctx.shared no; [ $? = 4 ] || exit 14
    `;
    await pool.start();
    pool.drop("writer", {
      exec: ["sh", "-c", script],
      env: { NODE: process.execPath, CLI: join(import.meta.dirname, "../../bin/mailchute.js") },
      max_attempts: 1,
    });
    const { lease, run } = await pool.result("writer", 20_000);
    const read = (node: string) =>
      JSON.parse(fs.readFileSync(join(pool.state, "kv", `${node}.json`), "utf8"));
    expect(read("writer").mine).toMatchObject({ value: "yes", lease, run, attempt: 1 });
    expect(read("__run__")["ctx.shared"]).toMatchObject({ value: "yes", lease });
    const stderr = fs.readFileSync(join(pool.state, "runs", String(run), "stderr.log"), "utf8");
    expect(stderr).toContain("ErrForeignKey: the task writer cannot write a key of other");
    expect(stderr).toContain("ErrLeaseLost: this run of writer holds its task no more");
  });
});
