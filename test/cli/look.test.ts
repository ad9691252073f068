/** status, ls, show, logs, events, wait: what they say about trees made by hand. */
import fs from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { renderTask } from "../../src/cli/commands/show.ts";
import { ownerSequence } from "../../src/host/identity.ts";
import { newCli, put } from "./run-cli.ts";

const RESULT = {
  task_id: "ok1",
  status: "completed",
  verdict: "pass",
  verdict_reason: "",
  output: "done",
  duration_ms: 12,
  completed_at: 1_700_000_000,
  attempts: 1,
  agent_id: "exec",
  lease: "s.1.x",
  exit_code: 0,
  run: "ok1@s.1.1",
  task: { id: "ok1", exec: ["true"] },
};
const ERROR = {
  task_id: "bad1",
  status: "failed",
  error: "boom\u001b[31m\u202e\nsecond line",
  attempts: 3,
  last_attempt_at: 1_700_000_000,
  failed_at: 1_700_000_000,
  code: "ErrExit",
  kind: "exit",
  agent_id: "exec",
  lease: "s.3.x",
  exit_code: 1,
  signal: null,
  run: null,
  task: { id: "bad1", exec: ["false"] },
};

test("status says that no supervisor runs while tasks wait", async () => {
  const cli = newCli();
  put(cli, "mailbox/inbox/a.json", { exec: ["true"] });
  put(cli, "mailbox/inbox/.hidden.json", "");
  const text = await cli(["status"]);
  expect(text.code).toBe(0);
  expect(text.stdout).toContain("no supervisor runs");
  const json = JSON.parse((await cli(["status", "--json"])).stdout);
  expect(json.counts.waiting).toEqual({ count: 1, is_exact: true });
  expect(json.supervisor.state).toBe("none");
});

test("status and doctor name files of the inbox whose endings keep them from being tasks, and no others", async () => {
  const cli = newCli();
  const misnamed = ["B.ndJSON", "UPPER.JSON", "c.jsonl", "d.yaml", "e.yml"];
  const others = [".x.yaml", "#y.yaml", "f.json", "g.ndjson", "h.yaml~", "i.json.tmp", "notes.txt"];
  const what = async (args: string[]): Promise<string[]> => {
    const { stdout } = await cli([...args, "--json"]);
    const { obstacles, checks } = JSON.parse(stdout) as Record<string, Record<string, string>[]>;
    return [...(obstacles ?? []), ...(checks ?? [])].map(
      (one) => `${one["what"] ?? one["message"]}`,
    );
  };
  for (const name of others) put(cli, `mailbox/inbox/${name}`, "");
  for (const verb of ["status", "doctor"])
    expect(await what([verb])).not.toContainEqual(expect.stringContaining("in the inbox"));
  for (const name of misnamed) put(cli, `mailbox/inbox/${name}`, "");
  const text =
    "5 files in the inbox are no tasks because of their endings: B.ndJSON, UPPER.JSON, c.jsonl, …";
  for (const verb of ["status", "doctor"])
    expect((await what([verb])).filter((line) => line === text)).toHaveLength(1);
  const { misnamed: names } = JSON.parse((await cli(["status", "--json"])).stdout);
  expect(names).toEqual(misnamed);
  for (const name of misnamed.slice(1)) fs.rmSync(join(cli.inbox, name));
  expect((await cli(["status"])).stdout).toContain(
    "1 file in the inbox is no task because of its ending: B.ndJSON",
  );
});

test("a record and an event that nest without end are passed over", async () => {
  const cli = newCli();
  const deep = `${"[".repeat(50_000)}${"]".repeat(50_000)}`;
  put(
    cli,
    "mailbox/outbox/ok1_result.json",
    `{"task_id":"ok1","status":"completed","output":${deep}}`,
  );
  const event = '{"event":"started","task_id":"ok1","t":1}';
  put(
    cli,
    "analytics/supervisor_lifecycle.jsonl",
    `{"event":"progress","task_id":"ok1","t":1,"x":${deep}}\n${event}\n`,
  );
  const events = await cli(["events"]);
  expect(events).toMatchObject({ code: 0, stdout: `${event}\n` });
  expect(events.stderr).toContain("1 lines of");
  for (const args of [["show", "ok1"], ["show", "ok1", "--json"], ["ls", "--json"], ["status"]])
    expect((await cli(args)).code, args.join(" ")).toBe(0);
});

test("status shows the rest when the plan is a link to itself", async () => {
  const cli = newCli();
  put(cli, "mailbox/inbox/a.json", { exec: ["true"] });
  fs.symlinkSync("roadmap.yaml", join(cli.dir, "state", "roadmap.yaml"));
  const text = await cli(["status"]);
  expect(text.code).toBe(0);
  expect(text.stdout).toContain("no supervisor runs");
});

test("status tells a dead supervisor from a stopped one", async () => {
  const cli = newCli();
  const owner = ownerSequence()().split("-");
  const document = {
    pid: 2 ** 22 + 1,
    place: owner[0],
    start_ticks: 1,
    started_at: new Date().toISOString(),
    status: "running",
  };
  put(cli, "supervisor.json", document);
  expect(JSON.parse((await cli(["status", "--json"])).stdout).supervisor.state).toBe("dead");
  expect((await cli(["status"])).stdout).toContain("died without stopping");
  put(cli, "supervisor.json", { ...document, status: "stopped" });
  expect(JSON.parse((await cli(["status", "--json"])).stdout).supervisor.state).toBe("stopped");
});

test("a stale pause is visible in status, with the command that made it", async () => {
  const cli = newCli();
  put(cli, "control.json", {
    paused: true,
    paused_at: "2026-01-01T00:00:00.000Z",
    paused_by: "c-17",
  });
  const { stdout } = await cli(["status"]);
  expect(stdout).toContain("by command c-17");
  expect(stdout).toContain("do: mailchute resume");
});

test("status lists what runs, with attempt and pid, and delayed tasks apart from ready ones", async () => {
  const cli = newCli();
  put(cli, `mailbox/processing/run1@abc.2~w-${ownerSequence()()}.json`, {
    id: "run1",
    exec: ["sleep", "9"],
  });
  put(cli, "mailbox/processing/rdy@abc.1~ready.json", { id: "rdy" });
  const delayed = put(cli, "mailbox/processing/dly@abc.1~ready.json", { id: "dly" });
  fs.utimesSync(delayed, Date.now() / 1000 + 600, Date.now() / 1000 + 600);
  const json = JSON.parse((await cli(["status", "--json"])).stdout);
  expect(json.counts).toMatchObject({ ready: 1, delayed: 1, running: 1 });
  expect(json.running[0]).toMatchObject({
    id: "run1",
    attempt: 2,
    pid: process.pid,
    verdict: "alive",
  });
});

test("no text output carries control characters or bidi marks from files, or is wider than 80 columns", async () => {
  const cli = newCli();
  put(cli, "mailbox/failed/bad1_error.json", ERROR);
  put(cli, "mailbox/inbox/a.json", {
    title: `\u001b]0;x\u0007${"long ".repeat(40)}\u2066`,
    exec: ["true"],
  });
  for (const args of [["status"], ["ls"], ["show", "a"], ["show", "bad1"]]) {
    const { stdout, code } = await cli(args);
    expect(code, args.join(" ")).toBe(0);
    expect(stdout.replaceAll("\n", "")).not.toMatch(/[\p{Cc}\p{Cf}]/u);
    if (args[0] !== "show")
      expect(Math.max(...stdout.split("\n").map((line) => line.length))).toBeLessThanOrEqual(80);
  }
});

test("ls shows each state, the latest first, and keeps to its limit", async () => {
  const cli = newCli();
  put(cli, "mailbox/inbox/w1.json", { exec: ["true"] });
  put(cli, "mailbox/inbox/w2.json", { exec: ["true"] });
  put(cli, "mailbox/outbox/ok1_result.json", RESULT);
  put(cli, "mailbox/failed/bad1_error.json", ERROR);
  const byAge = [
    "inbox/w2.json",
    "outbox/ok1_result.json",
    "inbox/w1.json",
    "failed/bad1_error.json",
  ];
  for (const [index, path] of byAge.entries()) {
    const at = Date.now() / 1000 - 60 * (index + 1);
    fs.utimesSync(join(cli.dir, "state/mailbox", path), at, at);
  }
  const states = async (...args: string[]) =>
    JSON.parse((await cli(["ls", "--json", ...args])).stdout).tasks.map(
      (task: { id: string; state: string }) => `${task.id} ${task.state}`,
    );
  const all = ["w2 waiting", "ok1 done", "w1 waiting", "bad1 failed"];
  expect(await states()).toEqual(all);
  expect(await states("--sort", "time")).toEqual(all);
  expect(await states("--limit", "2")).toEqual(all.slice(0, 2));
  expect(await states("--state-is", "waiting", "--limit", "1")).toEqual(["w2 waiting"]);
  expect(await states("--state-is", "failed")).toEqual(["bad1 failed"]);
  const cutShort = JSON.parse((await cli(["ls", "--json", "--limit", "1"])).stdout);
  expect(cutShort).toMatchObject({ has_more: true });
  expect(cutShort.tasks).toHaveLength(1);
  expect((await cli(["ls", "--state-is", "dne"])).code).toBe(2);
});

test("ls calls a cancelled task so; its record stays among the failed ones, and --state-is takes both words", async () => {
  const cli = newCli();
  put(cli, "mailbox/failed/bad1_error.json", ERROR);
  put(cli, "mailbox/failed/c1_error.json", { ...ERROR, task_id: "c1", kind: "cancelled" });
  const states = async (state: string) =>
    JSON.parse((await cli(["ls", "--json", "--sort", "id", "--state-is", state])).stdout).tasks.map(
      (task: { id: string; state: string }) => `${task.id} ${task.state}`,
    );
  expect(await states("failed")).toEqual(["bad1 failed", "c1 cancelled"]);
  expect(await states("cancelled")).toEqual(["c1 cancelled"]);
});

test("skipped tasks are counted and listed by themselves, and tasks are chosen by group and time, and sorted", async () => {
  const cli = newCli();
  const skip = (id: string, payload: unknown = null): object => ({
    ...ERROR,
    task_id: id,
    kind: "dependency_failed",
    error: `skipped, because bad1 failed (bad1 > ${id})`,
    task: { id, exec: ["true"], group: "gpu", payload },
  });
  put(cli, "mailbox/inbox/w1.json", { exec: ["true"], group: "gpu", priority: 3, title: "b" });
  put(cli, "mailbox/inbox/w2.json", { exec: ["true"], group: "gpu", priority: 9, title: "a" });
  put(cli, "mailbox/failed/bad1_error.json", {
    ...ERROR,
    task: { id: "bad1", exec: ["true"], payload: { kind: "dependency_failed" } },
  });
  put(cli, "mailbox/failed/s1_error.json", skip("s1"));
  put(cli, "mailbox/failed/s2_error.json", skip("s2"));
  const hourAgo = Date.now() / 1000 - 3600;
  fs.utimesSync(join(cli.dir, "state/mailbox/failed/s1_error.json"), hourAgo, hourAgo);
  const ids = async (...args: string[]) =>
    JSON.parse((await cli(["ls", "--json", ...args])).stdout).tasks.map(
      ({ id }: { id: string }) => id,
    );
  expect(await ids("--state-is", "skipped")).toEqual(["s2", "s1"]);
  expect(await ids("--state-is", "skipped", "--since", "10m")).toEqual(["s2"]);
  expect(await ids("--group", "gpu", "--sort", "priority")).toEqual(["w2", "w1", "s2", "s1"]);
  expect(await ids("--group", "gpu", "--sort", "title", "--limit", "1")).toEqual(["w2"]);
  expect((await ids("--sort", "time")).at(-1)).toBe("s1");
  expect((await cli(["ls", "--group", "none"])).stderr).toContain("there are no such tasks");
  expect((await cli(["ls", "--sort", "size"])).code).toBe(2);
  const status = await cli(["status"]);
  expect(status.stdout).toMatch(/failed +skipped\n.* 1 +2\n/);
  const { counts } = JSON.parse((await cli(["status", "--json"])).stdout);
  expect([counts.failed.count, counts.skipped.count]).toEqual([1, 2]);
});

test("show tells the record, the run and the events of a task, and exits with 3 for one that is unknown", async () => {
  const cli = newCli();
  put(cli, "mailbox/outbox/ok1_result.json", RESULT);
  put(cli, "runs/ok1@s.1.1/stdout.log", "hello\n");
  put(
    cli,
    "analytics/supervisor_lifecycle.jsonl",
    '{"event":"selected","task_id":"ok1","t":1}\ntorn{\n{"event":"selected","task_id":"other"}\n',
  );
  const known = JSON.parse((await cli(["show", "ok1", "--json"])).stdout);
  expect(known).toMatchObject({
    state: "done",
    record: { verdict: "pass" },
    task: { exec: ["true"] },
  });
  expect(known.run).toBe(join(cli.dir, "state", "runs", "ok1@s.1.1"));
  expect(known.events).toHaveLength(1);
  put(cli, "runs/2026-11-24/ok1@abcdefgh261124.1.1/stdout.log", "of its day\n");
  const day = join(cli.dir, "state/runs/2026-11-24/ok1@abcdefgh261124.1.1");
  const { runs } = JSON.parse((await cli(["show", "ok1", "--json"])).stdout);
  expect(runs).toEqual([known.run, day]);
  put(cli, "mailbox/outbox/ok1_result.json", {
    ...RESULT,
    run: "2026-11-24/ok1@abcdefgh261124.1.1",
  });
  expect((await cli(["logs", "ok1"])).stdout).toContain("of its day");
  expect((await cli(["show", "nope"])).code).toBe(3);
  expect((await cli(["show", "../outbox/ok1"])).code).toBe(3);
});

const TERMINAL = { isTerminal: true, columns: 80, colour: false };

test("show finds what happened to a task before the journal was rotated", async () => {
  const cli = newCli();
  const line = (event: string, t: number): string =>
    `${JSON.stringify({ event, task_id: "a", attempt: 1, t })}\n`;
  put(cli, "analytics/supervisor_lifecycle.2026-01-01T00-00-00-000Z.jsonl", line("paused", 1));
  put(cli, "analytics/supervisor_lifecycle.2026-01-02T00-00-00-000Z.jsonl", line("selected", 2));
  put(cli, "analytics/supervisor_lifecycle.jsonl", line("completed", 3));
  const eventsOf = async (id: string): Promise<string[]> =>
    JSON.parse((await cli(["show", id, "--json"])).stdout).events.map(
      (event: { event: string }) => event.event,
    );
  expect(await eventsOf("a")).toEqual(["selected", "completed"]);
  put(cli, "analytics/supervisor_lifecycle.jsonl", line("selected", 2) + line("started", 3));
  expect(await eventsOf("a")).toEqual(["selected", "started"]);
});

test("show cuts nothing on a terminal: errors, paths and ids are there whole", async () => {
  const cli = newCli();
  const id = `report-${"for-the-whole-of-the-year-".repeat(4)}end`;
  const error = `the compiler said ${"no and ".repeat(40)}never`;
  put(cli, `mailbox/failed/${id}_error.json`, { ...ERROR, task_id: id, error, run: `${id}@s.3.1` });
  put(cli, `runs/${id}@s.3.1/stdout.log`, "hello\n");
  put(
    cli,
    "analytics/supervisor_lifecycle.jsonl",
    `${JSON.stringify({ event: "attempt_failed", task_id: id, attempt: 1, t: 1, error })}\n`,
  );
  const known = JSON.parse((await cli(["show", id, "--json"])).stdout);
  const lines = renderTask(known, TERMINAL);
  const text = lines.join("\n");
  expect(text).not.toContain("…");
  for (const whole of [id, known.path, known.run]) expect(text).toContain(whole);
  const words = text.replace(/\s+/g, " ");
  expect(words.split(error), "as the record's and as the event's").toHaveLength(3);
  // Only what has no space in it is longer than a line.
  const tooLong = lines.filter((line) => line.length > 80 && line.trim().includes(" "));
  expect(tooLong.map((line) => line.slice(0, 14).trim())).toEqual(["id", "file", "run"]);
});

test("show folds long values on a terminal, and says where all of them is", async () => {
  const cli = newCli();
  const task = { id: "wide", prompt: "x".repeat(76_000), metadata: { dependencies: ["b"] } };
  const output = Array.from({ length: 500 }, (_, n) => `line ${n}`).join("\n");
  put(cli, "mailbox/outbox/wide_result.json", { ...RESULT, task_id: "wide", task, output });
  const known = JSON.parse((await cli(["show", "wide", "--json"])).stdout);
  const lines = renderTask(known, TERMINAL);
  expect(lines.filter((line) => line.length > 80 && !/^(?:file|run) /.test(line))).toEqual([]);
  expect(lines.length).toBeLessThan(60);
  expect(
    lines.filter((line) => line.trim() === "(all of it: mailchute show wide --json)"),
  ).toHaveLength(2);
  expect(lines).toContain(`${" ".repeat(14)}line 7`);
  const piped = await cli(["show", "wide"]);
  expect(piped.stdout).toContain(`what          ${"x".repeat(76_000)}\n`);
  expect(piped.stdout).toContain("output        line 0\\nline 1\\n");
});

test("show counts the directories of a batch's lines, and lists what else its run left", async () => {
  const cli = newCli();
  put(cli, "mailbox/outbox/ok1_result.json", RESULT);
  put(cli, "runs/ok1@s.1.1/batch.json", "{}");
  for (let line = 1; line <= 150; line++) put(cli, `runs/ok1@s.1.1/${line}/stdout.log`, "");
  const { stdout } = await cli(["show", "ok1"]);
  expect(stdout).toContain("batch.json (2 bytes)");
  expect(stdout).toContain("and 150 of single lines: mailchute logs ok1#LINE");
  expect(stdout.split("\n").length).toBeLessThan(20);
});

test("show points to the plan for a node that was not launched yet", async () => {
  const cli = newCli();
  put(cli, "roadmap.yaml", "nodes:\n  - { id: build, exec: [make] }\n");
  const node = await cli(["show", "build"]);
  expect(node.code).toBe(3);
  expect(node.stderr).toContain("mailchute roadmap show build");
  expect((await cli(["show", "biuld"])).stderr).toContain("`mailchute ls` lists tasks");
});

test("logs prints the bytes of the newest run, also with -f when the task has settled", async () => {
  const cli = newCli();
  put(cli, "mailbox/outbox/ok1_result.json", RESULT);
  put(cli, "runs/ok1@s.1.1/stdout.log", "hello\nno newline");
  put(cli, "runs/ok1@s.1.1/stderr.log", "warned\n");
  const both = { stdout: "hello\nno newline", stderr: "warned\n" };
  expect(await cli(["logs", "ok1"])).toMatchObject(both);
  expect(await cli(["logs", "ok1", "-f"])).toMatchObject(both);
  expect((await cli(["logs", "ok1", "--stderr"])).stdout).toBe("warned\n");
  put(cli, "runs/ok1@s.1.1/verify.log", "one line is missing\n");
  expect((await cli(["logs", "ok1"])).stderr).toContain("mailchute logs ok1 --verify");
  expect((await cli(["logs", "ok1", "--verify"])).stdout).toBe("one line is missing\n");
  const lines = (await cli(["logs", "ok1", "--json"])).stdout.trim().split("\n");
  expect(lines.map((line) => Object.values(JSON.parse(line)).join(" "))).toEqual(
    expect.arrayContaining(["ok1@s.1.1 stdout hello", "ok1@s.1.1 stderr warned"]),
  );
  expect((await cli(["logs", "nope"])).code).toBe(3);
});

test("logs prints what a task wrote that wrote only to stderr", async () => {
  const cli = newCli();
  put(cli, "mailbox/outbox/ok1_result.json", RESULT);
  put(cli, "runs/ok1@s.1.1/stderr.log", "only here\n");
  expect(await cli(["logs", "ok1"])).toMatchObject({ stdout: "", stderr: "only here\n", code: 0 });
});

test("logs of both streams ends with the one that was written to last", async () => {
  const cli = newCli();
  put(cli, "mailbox/outbox/ok1_result.json", RESULT);
  const paths = ["stdout", "stderr"].map((s) => put(cli, `runs/ok1@s.1.1/${s}.log`, `${s}\n`));
  const shown = async (): Promise<string[]> => {
    const { stdout } = await cli(["logs", "ok1", "--json"]);
    return stdout
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line).line);
  };
  for (const [i, last] of ["stdout", "stderr"].entries()) {
    fs.utimesSync(paths[1 - i] ?? "", 1000, 1000);
    fs.utimesSync(paths[i] ?? "", 2000, 2000);
    expect((await shown()).at(-1)).toBe(last);
  }
});

test("logs of a file that cannot be read says so, instead of showing nothing", async () => {
  const cli = newCli();
  put(cli, "mailbox/outbox/ok1_result.json", RESULT);
  const log = put(cli, "runs/ok1@s.1.1/stdout.log", "hello\n");
  fs.rmSync(log);
  fs.symlinkSync("elsewhere.log", log);
  for (const flags of [[], ["-f"]]) {
    const { code, stdout, stderr } = await cli(["logs", "ok1", ...flags]);
    expect(stderr).toContain("ErrIo: ELOOP");
    expect(stderr).toContain(log);
    expect({ code, stdout }).toEqual({ code: 74, stdout: "" });
  }
});

test("logs -f follows a running task and ends when it settles", async () => {
  const cli = newCli();
  const claim = put(cli, "mailbox/processing/ok1@s.1~w-0123456789ab-1-1-1.json", RESULT.task);
  const log = put(cli, "runs/ok1@s.1.1/stdout.log", "first\n");
  const following = cli(["logs", "ok1", "-f"]);
  fs.appendFileSync(log, "last\n");
  put(cli, "mailbox/outbox/ok1_result.json", RESULT);
  fs.rmSync(claim);
  expect(await following).toMatchObject({ code: 0, stdout: "first\nlast\n" });
});

test("events filters by task and name and counts torn lines on stderr", async () => {
  const cli = newCli();
  const lines = [
    '{"event":"started","task_id":"a"}',
    "torn{",
    '{"event":"failed","task_id":"a"}',
    '{"event":"failed","task_id":"b"}',
  ];
  put(cli, "analytics/supervisor_lifecycle.jsonl", `${lines.join("\n")}\n`);
  const result = await cli(["events", "--task", "a", "--event", "failed"]);
  expect(result.stdout).toBe('{"event":"failed","task_id":"a"}\n');
  expect(result.stderr).toContain("1 lines");
});

test("wait: 0 when all completed, 1 when some failed, 3 for an unknown id, 124 when the time is over", async () => {
  const cli = newCli();
  put(cli, "mailbox/outbox/ok1_result.json", RESULT);
  put(cli, "mailbox/failed/bad1_error.json", ERROR);
  put(cli, "mailbox/inbox/w1.json", { exec: ["true"] });
  expect((await cli(["wait", "ok1"])).code).toBe(0);
  expect((await cli(["wait", "ok1", "bad1"])).code).toBe(1);
  expect((await cli(["wait", "nope"])).code).toBe(3);
  expect((await cli(["wait", "w1", "--timeout", "50ms"])).code).toBe(124);
  expect((await cli(["wait", "--timeout", "50ms"])).code).toBe(124);
});

test("wait returns when the result appears, and without ids when the trays are empty", async () => {
  const cli = newCli();
  const task = put(cli, "mailbox/inbox/ok1.json", { exec: ["true"] });
  fs.mkdirSync(join(cli.dir, "state/mailbox/outbox"), { recursive: true });
  const byId = cli(["wait", "ok1", "--timeout", "120s"]);
  const all = cli(["wait", "--timeout", "120s"]);
  put(cli, "mailbox/outbox/ok1_result.json", RESULT);
  fs.rmSync(task);
  expect((await byId).code).toBe(0);
  expect((await all).code).toBe(0);
});

test("events keep their names: a failed task has a `completed` that tells its status, and a retry counts its runs from 1", async () => {
  const cli = newCli();
  await cli(["init", "state"]);
  await cli(["enqueue", "--id", "bad", "--max-attempts", "2", "--", "false"]);
  await cli(["run", "--drain"]);
  await cli(["retry", "bad"]);
  await cli(["run", "--drain"]);
  const events = (await cli(["events", "--task", "bad"])).stdout
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line));
  const named = (name: string) => events.filter(({ event }) => event === name);
  expect(named("completed").map(({ status }) => status)).toEqual(["failed", "failed"]);
  expect(named("started").map(({ attempt }) => attempt)).toEqual([1, 2, 1, 2]);
  expect(new Set(named("started").map(({ submission }) => submission)).size).toBe(2);
  const page = fs.readFileSync(new URL("../../docs/events.md", import.meta.url), "utf8");
  for (const said of ["`completed`, also a failed one", "begins again at 1", "run 4 of 3"])
    expect(page).toContain(said);
});
