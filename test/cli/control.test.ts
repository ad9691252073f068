/** `control …` and the top-level short forms: what they enqueue, print and refuse. */
import fs from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { type Cli, newCli, put } from "./run-cli.ts";

/** A command line with a state tree that has no settings. @param ids tasks that wait there */
function newTree(...ids: string[]): Cli {
  const cli = newCli();
  put(cli, "config.yaml", "");
  for (const id of ids) put(cli, `mailbox/inbox/${id}.json`, { exec: ["true"] });
  return cli;
}

/** The commands that wait in the control inbox. */
function waiting(cli: Cli): Record<string, unknown>[] {
  const inbox = join(cli.dir, "state", "control", "inbox");
  if (!fs.existsSync(inbox)) return [];
  return fs
    .readdirSync(inbox)
    .map((name) => JSON.parse(fs.readFileSync(join(inbox, name), "utf8")));
}

test("control pause enqueues a record with command pause and prints its id", async () => {
  const cli = newTree();
  const { code, stdout, stderr } = await cli(["control", "pause"]);
  expect(code).toBe(0);
  expect(stderr).toContain("no supervisor runs here; the command waits for the next one");
  expect(waiting(cli)).toEqual([
    { id: stdout.trim(), command: "pause", args: {}, created_at: expect.any(Number) },
  ]);
});

test("commands that could not be sent are not said to wait", async () => {
  const cli = newTree("one", "two");
  fs.mkdirSync(join(cli.dir, "state", "control"));
  fs.writeFileSync(join(cli.dir, "state", "control", "inbox"), "");
  const { code, stdout, stderr } = await cli(["cancel", "one", "two"]);
  expect(stderr).not.toContain("waits for the next one");
  expect(stderr).toContain("mailchute: two: ");
  expect({ code, stdout }).toEqual({ code: 73, stdout: "" });
});

test("0 slots are set, with a warning that nothing starts", async () => {
  for (const args of [["set-workers"], ["control", "set-workers", "--workers"]]) {
    const told = async (count: string) => (await newCli()([...args, count])).stderr;
    expect(await told("0"), args[0]).toContain("with 0 slots no task starts");
    expect(await told("1"), args[0]).not.toContain("0 slots");
  }
});

test("control set-workers --workers 3 has args {workers: 3}", async () => {
  const cli = newTree();
  expect((await cli(["control", "set-workers", "--workers", "3"])).code).toBe(0);
  expect(waiting(cli)).toMatchObject([{ command: "set-workers", args: { workers: 3 } }]);
});

test("control cancel --node ID names the node, and does not end it for good", async () => {
  const cli = newTree("task-long");
  expect((await cli(["control", "cancel", "--node", "task-long"])).code).toBe(0);
  expect(waiting(cli)).toMatchObject([{ command: "cancel", args: { node: "task-long" } }]);
  expect(waiting(cli)[0]?.["args"]).not.toHaveProperty("final");
});

test.each([
  { args: ["pause"], command: "pause", sent: {} },
  { args: ["resume"], command: "resume", sent: {} },
  { args: ["replan"], command: "replan", sent: {} },
  { args: ["set-workers", "5"], command: "set-workers", sent: { workers: 5 } },
  { args: ["control", "resume"], command: "resume", sent: {} },
  { args: ["control", "replan"], command: "replan", sent: {} },
  { args: ["cancel", "a"], command: "cancel", sent: { node: "a", final: true } },
  { args: ["cancel", "a", "--requeue"], command: "cancel", sent: { node: "a" } },
])("$args enqueues $command", async ({ args, command, sent }) => {
  const cli = newTree("a");
  expect((await cli(args)).code).toBe(0);
  expect(waiting(cli)).toMatchObject([{ command, args: sent }]);
});

test("--json prints the command as one object and nothing else on stdout", async () => {
  const cli = newTree();
  const { stdout } = await cli(["control", "set-workers", "--workers", "2", "--json"]);
  const [command] = waiting(cli);
  expect(JSON.parse(stdout)).toEqual({
    id: command?.["id"],
    command: "set-workers",
    args: { workers: 2 },
  });
});

test.each([
  { args: ["control"], hint: "control needs a second word: pause, resume" },
  { args: ["control", "puase"], hint: 'did you mean "mailchute control pause"?' },
  { args: ["control", "set_worker"], hint: 'did you mean "mailchute control set-workers"?' },
  { args: ["control", "set-workers"], hint: "set-workers needs a whole number, found none" },
  { args: ["control", "set-workers", "--workers", "two"], hint: 'whole number, found "two"' },
  { args: ["control", "set-workers", "--workers=-1"], hint: 'whole number, found "-1"' },
  { args: ["control", "set-workers", "--workers", "5000"], hint: "workers" },
  { args: ["control", "set-workers", "--worker", "2"], hint: "did you mean --workers?" },
  { args: ["control", "pause", "--workers", "2"], hint: "--workers does not go with pause" },
  { args: ["control", "pause", "--node", "a"], hint: "--node does not go with pause" },
  { args: ["control", "cancel"], hint: "cancel needs --node ID" },
  { args: ["control", "pause", "now"], hint: 'does not know what to do with "now"' },
  { args: ["set-workers"], hint: "usage: mailchute set-workers N" },
  { args: ["set-workers", "100000"], hint: "less or equal to 1024" },
  { args: ["set-workers", "1.5"], hint: 'whole number, found "1.5"' },
  { args: ["cancel"], hint: "usage: mailchute cancel ID" },
])("$args is refused with exit code 2 and says what to do", async ({ args, hint }) => {
  const cli = newTree();
  const { code, stdout, stderr } = await cli(args);
  expect(code).toBe(2);
  expect(stdout).toBe("");
  expect(stderr).toContain(hint);
  expect(waiting(cli)).toEqual([]);
});

test("with --json a refusal is one JSON object on stderr", async () => {
  const { code, stdout, stderr } = await newTree()(["control", "puase", "--json"]);
  expect(code).toBe(2);
  expect(stdout).toBe("");
  expect(JSON.parse(stderr).error).toMatchObject({ code: "ErrUsage" });
});

test("--wait without a supervisor ends in exit code 5; the command stays for the next one", async () => {
  const cli = newTree();
  const { code, stderr } = await cli(["pause", "--wait"]);
  expect(code).toBe(5);
  expect(stderr).toContain("ErrSupervisorGone");
  expect(waiting(cli)).toMatchObject([{ command: "pause" }]);
});

test("run takes up commands that waited, and acknowledges them", async () => {
  const cli = newTree();
  const { id } = JSON.parse(
    (await cli(["control", "set-workers", "--workers", "2", "--json"])).stdout,
  );
  expect((await cli(["run", "--drain"])).code).toBe(0);
  const record = join(cli.dir, "state", "control", "outbox", `${id}_result.json`);
  expect(JSON.parse(fs.readFileSync(record, "utf8"))).toMatchObject({
    status: "completed",
    command: "set-workers",
    result: { workers: 2 },
  });
});

test.each([
  ["pause"],
  ["resume"],
  ["replan"],
  ["set-workers", "2"],
  ["cancel", "a"],
  ["cancel", "a", "b", "--wait"],
  ["control", "pause"],
])("%s %s where there is no state tree says so, and makes none", async (...words) => {
  const cli = newCli();
  const { code, stderr } = await cli([...words, "--state", "stat"]);
  expect(stderr).toContain("ErrNoState");
  expect(stderr).toContain(join(cli.dir, "stat"));
  expect(code).toBe(3);
  expect(fs.readdirSync(cli.dir)).toEqual([]);
});
