/** Fields that have no effect where they stand: `enqueue` refuses them, and `status`, `show` and `why` tell of them in dropped files. */
import fs from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { fieldsIn, taskFields } from "../../src/core/task-fields.ts";
import { newPool, type Pool } from "../support/pool.ts";
import { waitFor } from "../support/wait-for.ts";
import { newCli } from "./run-cli.ts";

/** One misspelling of each field and each word that is not accepted, each in a task of its own. */
function wrongTasks(place: "task" | "line"): { name: string; meant: string }[] {
  return fieldsIn(place).flatMap((meant) => {
    const { notCalled = [] } = taskFields().get(meant) ?? {};
    return [`${meant.slice(0, 1)}x${meant.slice(1)}`, ...notCalled].map((name) => ({
      name,
      meant,
    }));
  });
}

const lineOf = (name: string): string => JSON.stringify({ exec: ["true"], [name]: "x" });

const stateOf = async (pool: Pool): Promise<string> => (await pool.run(["status"])).stdout;

test("enqueue --file refuses each line with such a field and names the right one; --allow-unknown passes them", async () => {
  const cli = newCli();
  const wrong = wrongTasks("task");
  const lines = wrong.map(({ name }) => lineOf(name)).join("\n");
  const refused = await cli(["enqueue", "--file", "-"], { input: `${lines}\n${lineOf("ticket")}` });
  expect(refused.code).toBe(1);
  expect(refused.stdout.trim().split("\n")).toHaveLength(1);
  for (const [at, { name, meant }] of wrong.slice(0, 20).entries())
    expect(refused.stderr).toContain(
      `line ${at + 1}: "${name}" is no field of a task; did you mean "${meant}"?`,
    );
  expect(refused.stderr).toContain(`${wrong.length} lines refused`);
  const passed = await cli(["enqueue", "--file", "-", "--allow-unknown"], { input: lines });
  expect(passed.code).toBe(0);
  expect(passed.stdout.trim().split("\n")).toHaveLength(wrong.length);
});

test("enqueue --batch submits nothing when a line has such a field, wherever the line is", async () => {
  const cli = newCli();
  const good = `${lineOf("ticket")}\n`.repeat(40_000);
  const inboxOf = (): string[] => fs.readdirSync(cli.inbox);
  for (const { name, meant } of [
    { name: "max_attempt", meant: "max_attempts" },
    { name: "priority", meant: "a task or a node of the plan" },
  ]) {
    const input = `${good}${lineOf(name)}\n${good}`;
    const refused = await cli(["enqueue", "--batch", "--file", "-"], { input });
    expect(refused.code).toBe(2);
    expect(refused.stderr).toContain(`line 40001: "${name}"`);
    expect(refused.stderr).toContain(meant);
    expect(refused.stderr).toContain("--allow-unknown");
    expect(inboxOf()).toEqual([]);
  }
  const args = ["enqueue", "--batch", "--file", "-", "--id", "b", "--allow-unknown"];
  expect((await cli(args, { input: lineOf("retries") })).code).toBe(0);
  expect(inboxOf()).toEqual(["b.ndjson"]);
});

test("a name that is allowed is told of once, and a copy of a task is checked, too", async () => {
  const cli = newCli();
  const input = `${lineOf("tries")}\n${lineOf("tries")}`;
  const allowed = await cli(["enqueue", "--file", "-", "--allow-unknown"], { input });
  expect(allowed.code).toBe(0);
  expect(allowed.stderr.match(/"tries" is no field/g)).toHaveLength(1);
  fs.writeFileSync(join(cli.inbox, "old.json"), lineOf("retries"));
  const copied = await cli(["enqueue", "--like", "old"]);
  expect(copied).toMatchObject({ code: 2, stdout: "" });
  expect(copied.stderr).toContain('did you mean "max_attempts"?');
  expect((await cli(["enqueue", "--like", "old", "--allow-unknown"])).code).toBe(0);
});

test("status, show and why tell of the fields of dropped files, before and after these have run", async () => {
  const pool = newPool();
  pool.drop("first", { exec: ["true"], max_attempt: 1, owner: "me" });
  pool.drop("second", { exec: ["true"], not_before: 4102444800, tries: 2 });
  pool.drop("third", { exec: ["true"], max_attempt: 1 });
  fs.writeFileSync(join(pool.inbox, "many.ndjson"), `${lineOf("ticket")}\n${lineOf("group")}\n`);
  const why = '"max_attempt" is no field of a task; did you mean "max_attempts"?';
  for (const verb of ["show", "why"])
    expect((await pool.run([verb, "first"])).stdout).toContain(`warning   `);
  await pool.start();
  await waitFor(async () => (await stateOf(pool)).includes("many: "), { what: "the batch" });
  const text = (await stateOf(pool)).replaceAll(/\s+/g, " ");
  expect(text).toMatch(/(?:first, third|third, first): "max_attempt" is no field of a task/);
  expect(text).toContain('second: "tries" is no field of a task');
  expect(text).toContain('many: "group" has no effect in a line of a batch, only in a task');
  expect(text).not.toContain("owner");
  await pool.result("first");
  await pool.result("many");
  const { stdout } = await pool.run(["show", "first", "--json"]);
  expect(JSON.parse(stdout)).toMatchObject({ field_warnings: [why] });
  expect((await pool.run(["why", "first"])).stdout.replaceAll(/\s+/g, " ")).toContain(why);
  expect((await pool.run(["show", "many"])).stdout).toContain('"group" has no effect');
});

test("dependencies at the top of a dropped task hold it back, and a word is a priority", async () => {
  const pool = newPool();
  pool.drop("late", { exec: ["true"], dependencies: ["early"], priority: "critical" });
  pool.drop("later", {
    exec: ["true"],
    depends_on: [{ node: "late", required_status: "terminal" }],
  });
  await pool.start();
  await waitFor(async () => (await stateOf(pool)).includes("early"), { what: "the reason" });
  expect((await pool.run(["why", "late"])).stdout).toContain("early");
  expect((await pool.run(["show", "later"])).stdout).toMatch(/after +late/);
  const { stdout } = await pool.run(["ls", "--json"]);
  const { tasks } = JSON.parse(stdout) as { tasks: { id: string; priority: number | null }[] };
  expect(tasks.find(({ id }) => id === "late")?.priority).toBe(300);
  pool.drop("early", { exec: ["true"] });
  await pool.result("later");
  const order = pool.events().filter(({ event }) => event === "started");
  expect(order.map(({ task_id: id }) => id)).toEqual(["early", "late", "later"]);
});

test("an edit and the options of a copy replace the dependencies in each place", async () => {
  const pool = newPool();
  pool.drop("task", { exec: ["true"], dependencies: ["a"], metadata: { dependencies: ["b"] } });
  const edited = await pool.run(["edit", "task", "--after", "c", "--priority", "high"]);
  expect(edited.code).toBe(0);
  expect(JSON.parse(fs.readFileSync(join(pool.inbox, "task.json"), "utf8"))).toEqual({
    exec: ["true"],
    metadata: { dependencies: ["c"] },
    priority: "high",
  });
  pool.drop("old", { exec: ["true"], depends_on: "a", retry_policy: { max_attempts: 9 } });
  const args = ["enqueue", "--like", "old", "--id", "new", "--after", "c", "--max-attempts", "2"];
  expect((await pool.run(args)).code).toBe(0);
  const copy = JSON.parse(fs.readFileSync(join(pool.inbox, "new.json"), "utf8"));
  expect(copy).toMatchObject({ metadata: { dependencies: ["c"] }, max_attempts: 2 });
  expect(Object.keys(copy)).not.toContain("depends_on");
  expect(Object.keys(copy)).not.toContain("retry_policy");
});

test("roadmap check and schedule ls tell of them, too", async () => {
  const pool = newPool();
  const plan = join(pool.state, "roadmap.yaml");
  fs.writeFileSync(plan, "nodes:\n  - { id: a, exec: [x], retries: 2 }\n");
  const bad = await pool.run(["roadmap", "check"]);
  expect(bad.code).toBe(1);
  expect(bad.stdout).toContain('unknown key "retries" (did you mean "max_attempts"?');
  fs.writeFileSync(plan, "nodes:\n  - { id: a, exec: [x], group: gpu, model: big, owner: me }\n");
  const warned = await pool.run(["roadmap", "check"]);
  expect(warned.code).toBe(0);
  expect(warned.stdout).toMatch(/:2:\d+: warning: "group" has no effect in a node of the plan/);
  expect(warned.stdout).toMatch(/:2:\d+: warning: "model" has no effect in a node of the plan/);
  expect(warned.stdout).not.toContain("owner");
  fs.mkdirSync(join(pool.state, "schedules"));
  const write = (text: string): void =>
    fs.writeFileSync(join(pool.state, "schedules", "nightly.yaml"), text);
  write("every: 1h\ntask: {exec: [x], timeout: 5}\n");
  const listed = await pool.run(["schedule", "ls"]);
  expect(listed.code).toBe(0);
  expect(listed.stderr).toContain(
    'task: "timeout" is no field of a task; did you mean "timeout_ms"?',
  );
  expect((await pool.run(["schedule", "show", "nightly"])).stdout).toContain("warning   task: ");
  write("every: 1h\npriority: 5\ntask: {exec: [x]}\n");
  expect((await pool.run(["schedule", "show", "nightly"])).stdout).toContain(
    "no field of a schedule",
  );
});
