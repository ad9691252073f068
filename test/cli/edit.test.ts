/** `edit`, `urgent` and `enqueue --like` without a supervisor: the command line changes the task itself. */
import fs from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { type Cli, newCli } from "./run-cli.ts";

const taskOf = (cli: Cli, id: string): Record<string, unknown> =>
  JSON.parse(fs.readFileSync(join(cli.inbox, `${id}.json`), "utf8")) as Record<string, unknown>;

it("edit changes what options say, or what the editor saves, and keeps a text that is no task", async () => {
  const cli = newCli();
  await cli(["enqueue", "--id", "a", "--payload", '{"n":12345678901234567890123}']);
  const done = await cli(["edit", "a", "--priority", "5", "--delay", "1h", "--after", "b"]);
  expect(done).toMatchObject({ code: 0, stdout: "a\n" });
  expect(taskOf(cli, "a")).toMatchObject({ priority: 5, metadata: { dependencies: ["b"] } });
  expect(fs.readFileSync(join(cli.inbox, "a.json"), "utf8")).toContain("12345678901234567890123");
  const byHand = async (script: string) =>
    await cli(["edit", "a"], { env: { EDITOR: `sed -i ${script}`, TMPDIR: cli.dir } });
  expect(await byHand("s/12345678901234567890123/42/")).toMatchObject({ code: 0 });
  expect(taskOf(cli, "a")["payload"]).toEqual({ n: 42 });
  expect((await byHand("s/nothing/x/")).stderr).toContain("nothing was changed");
  const before = fs.readFileSync(join(cli.inbox, "a.json"), "utf8");
  const bad = await byHand("s/payload/pay/");
  expect(bad).toMatchObject({ code: 2, stderr: expect.stringContaining("nothing to run") });
  const [, kept = ""] = /your text is kept in (\S+)/.exec(bad.stderr) ?? [];
  expect(fs.readFileSync(kept, "utf8")).toContain('"pay"');
  expect(fs.readFileSync(join(cli.inbox, "a.json"), "utf8")).toBe(before);
  expect((await cli(["edit", "nope", "--priority", "1"])).code).toBe(3);
  expect((await cli(["edit", "a"])).stderr).toContain("there is no editor");
});

it("urgent raises what waits, and names what does not", async () => {
  const cli = newCli();
  await cli(["enqueue", "--id", "a", "--", "true"]);
  const { code, stdout, stderr } = await cli(["urgent", "a", "nope"]);
  expect({ code, stdout }).toEqual({ code: 3, stdout: "a\n" });
  expect(stderr).toContain('nope: no task "nope" waits');
  expect(taskOf(cli, "a")["priority"]).toBe(1_000_000_000);
});

it("enqueue --like submits one like it under a new id, with the changes that options say", async () => {
  const cli = newCli();
  await cli(["enqueue", "--id", "a", "--priority", "3", "--delay", "1h", "--", "true"]);
  await cli(["enqueue", "--like", "a", "--id", "b", "--title", "again"]);
  const { created_at: _, ...like } = taskOf(cli, "b");
  expect(like).toEqual({ id: "b", title: "again", priority: 3, exec: ["true"], cwd: cli.dir });
  const dry = await cli(["enqueue", "--like", "a", "--dry-run", "--", "false"]);
  expect(JSON.parse(dry.stdout)).toMatchObject({ exec: ["false"], priority: 3 });
  const limits = { memory_bytes: 2 ** 30, processes: 9 };
  await cli(["enqueue", "--id", "c", "--max-memory", "1G", "--max-processes", "8", "--", "true"]);
  await cli(["enqueue", "--like", "c", "--id", "d", "--max-processes", "9"]);
  expect(taskOf(cli, "d")["run_limits"]).toEqual(limits);
  expect((await cli(["enqueue", "--like", "nope"])).code).toBe(3);
  expect((await cli(["enqueue", "--edit", "--", "true"])).code).toBe(2);
  expect((await cli(["enqueue", "--like", "a", "--each", "x"])).code).toBe(2);
});
