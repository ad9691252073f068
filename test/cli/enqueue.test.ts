/** `enqueue`: ids, bodies, files of lines, duplicates. */
import fs from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { newPool } from "../support/pool.ts";
import { waitFor } from "../support/wait-for.ts";
import { type Cli, newCli, put } from "./run-cli.ts";

const read = (cli: Cli, id: string): Record<string, unknown> =>
  JSON.parse(fs.readFileSync(join(cli.inbox, `${id}.json`), "utf8"));

test("an id of digits stays as it was typed", async () => {
  const cli = newCli();
  expect(await cli(["enqueue", "--id", "0012", "--", "true"])).toMatchObject({
    code: 0,
    stdout: "0012\n",
  });
  expect(read(cli, "0012")).toMatchObject({ id: "0012", exec: ["true"] });
});

test("what stands after -- is the program, options and all, and the caller's directory is recorded", async () => {
  const cli = newCli();
  expect((await cli(["enqueue", "--id", "a", "--", "ls", "-la", "--json"])).stdout).toBe("a\n");
  expect(read(cli, "a")).toMatchObject({ exec: ["ls", "-la", "--json"], cwd: cli.dir });
});

test("a program without -- is refused with the advice to write it", async () => {
  const result = await newCli()(["enqueue", "ls", "-la"]);
  expect(result.code).toBe(2);
  expect(result.stderr).toContain("goes after --");
});

test("every flag becomes its field", async () => {
  const cli = newCli();
  const nowSeconds = Math.floor(Date.now() / 1000);
  const flags = [
    "--title",
    "T",
    "--priority",
    "-5",
    "--after",
    "007",
    "--after",
    "b",
    "--delay",
    "1h",
    "--max-attempts",
    "2",
  ];
  const more = [
    "--timeout",
    "1.5s",
    "--agent",
    "coder",
    "--prompt",
    "p",
    "--cap",
    "x",
    "--cwd",
    "sub/dir",
    "--env",
    "K=a=b",
    "--worktree",
    "auto",
    "--land",
    "merge",
    "--target",
    "release",
    ..."--max-memory 1.5G --max-cpu 10m --max-processes 200 --max-disk 500M".split(" "),
  ];
  expect((await cli(["enqueue", "--id", "a", ...flags, ...more])).code).toBe(0);
  const task = read(cli, "a");
  expect(task).toMatchObject({
    title: "T",
    priority: -5,
    metadata: { dependencies: ["007", "b"] },
    max_attempts: 2,
    timeout_ms: 1500,
    agent: "coder",
    prompt: "p",
    capabilities: ["x"],
    cwd: join(cli.dir, "sub/dir"),
    env: { K: "a=b" },
    worktree: "auto",
    land: "merge",
    target: "release",
    run_limits: {
      memory_bytes: 1.5 * 1024 ** 3,
      cpu_ms: 600_000,
      processes: 200,
      disk_bytes: 500 * 1024 ** 2,
    },
  });
  expect(task["not_before"]).toBeGreaterThanOrEqual(nowSeconds + 3600);
});

test("a limit in the wrong unit is refused, with the right one", async () => {
  const cli = newCli();
  const { code, stderr } = await cli(["enqueue", "--max-memory", "200", "--", "true"]);
  expect(code).toBe(2);
  expect(stderr).toMatch(/run_limits\.memory_bytes: 200 is too little/);
  expect(fs.existsSync(cli.inbox)).toBe(false);
});

test("a way to land that there is not is refused with those that there are", async () => {
  const cli = newCli();
  const { code, stderr } = await cli(["enqueue", "--land", "squash", "--", "true"]);
  expect(code).toBe(2);
  expect(stderr).toContain('--land wants one of none, branch, merge, exec, found "squash"');
  expect(fs.existsSync(cli.inbox)).toBe(false);
});

test("a payload keeps every digit", async () => {
  const cli = newCli();
  await cli(["enqueue", "--id", "a", "--payload", '{"n":1.000,"big":12345678901234567890}']);
  expect(fs.readFileSync(join(cli.inbox, "a.json"), "utf8")).toContain(
    '"payload":{"n":1.000,"big":12345678901234567890}',
  );
});

test("a payload that breaks out of its member is refused", async () => {
  const cli = newCli();
  expect((await cli(["enqueue", "--payload", '1,"exec":["x"]}'])).code).toBe(2);
});

test("nothing to run is refused with exit code 2", async () => {
  expect((await newCli()(["enqueue"])).code).toBe(2);
  expect((await newCli()(["enqueue", "--"])).code).toBe(2);
});

test("an id that exists is refused with exit code 4", async () => {
  const cli = newCli();
  await cli(["enqueue", "--id", "a", "--", "true"]);
  const again = await cli(["enqueue", "--id", "a", "--", "false"]);
  expect(again.code).toBe(4);
  expect(again.stderr).toContain("ErrTaskExists");
});

test("the same command again changes nothing, and says how its task stands", async () => {
  const pool = newPool();
  const enqueue = (...more: string[]) => pool.run(["enqueue", "--id", "a", ...more, "--", "true"]);
  expect(await enqueue()).toMatchObject({ code: 0, stdout: "a\n" });
  const created = fs.readFileSync(join(pool.inbox, "a.json"), "utf8");
  // A later second than that of the task.
  fs.writeFileSync(
    join(pool.inbox, "a.json"),
    created.replace(/"created_at":(\d+)/, '"created_at":1000'),
  );
  const waiting = await enqueue("--json");
  expect(JSON.parse(waiting.stdout)).toEqual({ id: "a", outcome: "unchanged" });
  await pool.run(["run", "--drain", "--no-live"]);
  const done = await enqueue();
  expect(done).toMatchObject({ code: 0, stdout: "a\n" });
  expect(done.stderr).toMatch(
    /^mailchute: a is there already: it has completed .*, and nothing runs; to run it again: mailchute retry a --completed\n$/,
  );
  expect(await enqueue("--wait")).toMatchObject({ code: 0 });
  const other = await enqueue("--priority", "1");
  expect(other).toMatchObject({ code: 4, stdout: "" });
  expect(other.stderr).toContain("ErrTaskExists");
  expect(fs.readdirSync(pool.inbox)).toEqual([]);
});

test("a file that is sent again is told how many of its lines are there already", async () => {
  const cli = newCli();
  const input = '{"id":"a","exec":["true"]}\n{"id":"b","exec":["true"]}\n';
  const first = await cli(["enqueue", "--file", "-"], { input });
  const made = `mailchute: made a new state tree at ${join(cli.dir, "state")}\n`;
  expect(first).toEqual({ code: 0, stdout: "a\nb\n", stderr: made });
  const again = await cli(["enqueue", "--file", "-"], {
    input: `${input}{"id":"c","exec":["true"]}\n`,
  });
  expect(again).toMatchObject({ code: 0, stdout: "a\nb\nc\n" });
  expect(again.stderr).toBe("mailchute: 1 submitted, 2 unchanged: there already\n");
});

test("of one --dedup key there is one task: the same again is no other, another is refused", async () => {
  const cli = newCli();
  const first = await cli(["enqueue", "--dedup", "key", "--", "true"]);
  const second = await cli(["enqueue", "--dedup", "key", "--", "true"]);
  const third = await cli(["enqueue", "--dedup", "key", "--", "false"]);
  expect([first.code, second.code, third.code]).toEqual([0, 0, 4]);
  expect(second.stdout).toBe(first.stdout);
  expect(fs.readdirSync(cli.inbox)).toEqual([`${first.stdout.trim()}.json`]);
});

test("--file submits each line as it is, reports bad lines with their numbers and counts them", async () => {
  const cli = newCli();
  const good = '{"id":"l1","exec":["true"], "payload": 1.0}';
  const lines = [good, "not json", "", '{"exec":["true"]}', "null", '{"id":"l1","exec":["false"]}'];
  const result = await cli(["enqueue", "--file", "-"], { input: lines.join("\n") });
  expect(result.code).toBe(1);
  expect(result.stdout.split("\n")[0]).toBe("l1");
  expect(result.stderr).toMatch(/line 2: /);
  expect(result.stderr).toMatch(/line 5: /);
  expect(result.stderr).toMatch(/line 6: .*l1/);
  expect(result.stderr).toContain("2 submitted, 3 lines refused");
  expect(fs.readFileSync(join(cli.inbox, "l1.json"), "utf8")).toBe(`${good}\n`);
});

test("--file takes more lines than one group, and --json answers with one document", async () => {
  const cli = newCli();
  const file = put(
    cli,
    "tasks.ndjson",
    Array.from({ length: 600 }, (_, i) => `{"id":"t${i}","exec":["true"]}\n`).join(""),
  );
  const result = await cli(["enqueue", "--json", "--file", file]);
  expect(result.code).toBe(0);
  expect(JSON.parse(result.stdout)).toMatchObject({ submitted: 600, bad: 0, refused: 0 });
  expect(fs.readdirSync(cli.inbox)).toHaveLength(600);
});

test.each(["as a file", "from stdin"])(
  "lines of any length %s are taken byte for byte, however they fall into what is read at once",
  async (how) => {
    const cli = newCli();
    // Around the 256 KiB that are read at once, the megabyte that a task may have, and both.
    const sizes = [
      100, 262_000, 262_144, 300, 5000, 1_048_575, 1_048_577, 60, 700_000, 700_000, 3_000_000, 80,
      262_143, 1_300_000,
    ];
    const lines = sizes.map((size, i) => {
      const head = `{"id":"t${i}","exec":["true"],"payload":"`;
      return `${head}${String.fromCharCode(97 + i).repeat(size - head.length - 2)}"}`;
    });
    const text = lines.join("\n");
    const args = [
      "enqueue",
      "--json",
      "--file",
      how === "as a file" ? put(cli, "tasks.ndjson", text) : "-",
    ];
    const result = await cli(args, how === "as a file" ? {} : { input: text });
    const tooLong = sizes.filter((size) => size >= 1_048_577).length;
    expect(JSON.parse(result.stdout)).toMatchObject({
      submitted: sizes.length - tooLong,
      bad: tooLong,
    });
    for (const [i, line] of lines.entries()) {
      const path = join(cli.inbox, `t${i}.json`);
      if ((sizes[i] ?? 0) >= 1_048_577) expect(fs.existsSync(path), path).toBe(false);
      // No toBe: it would print megabytes.
      else expect(fs.readFileSync(path, "utf8").trimEnd() === line, path).toBe(true);
    }
  },
);

test("who writes line by line to --file - has each line in the inbox before the next", async () => {
  const pool = newPool();
  const enqueue = pool.spawn(["enqueue", "--file", "-"]);
  for (const id of ["a", "b", "c"]) {
    enqueue.child.stdin?.write(`{"id":"${id}","exec":["true"]}\n`);
    await waitFor(() => fs.existsSync(join(pool.inbox, `${id}.json`)), {
      what: `${id} in the inbox`,
    });
  }
  enqueue.child.stdin?.end();
  expect((await enqueue.ended).exitCode).toBe(0);
});

test("--file refuses flags that describe one task", async () => {
  expect((await newCli()(["enqueue", "--file", "-", "--priority", "1"])).code).toBe(2);
});

test("a file that cannot be read is an input error", async () => {
  expect((await newCli()(["enqueue", "--file", "missing.ndjson"])).code).toBe(74);
});

test("DROVER_MAILBOX_DIR moves the mailbox, and our own variable wins over it", async () => {
  const cli = newCli();
  const env = { DROVER_MAILBOX_DIR: join(cli.dir, "theirs") };
  await cli(["enqueue", "--id", "a", "--", "true"], { env });
  expect(fs.existsSync(join(cli.dir, "theirs", "inbox", "a.json"))).toBe(true);
  await cli(["enqueue", "--id", "b", "--", "true"], {
    env: { ...env, MAILCHUTE_MAILBOX_DIR: join(cli.dir, "ours") },
  });
  expect(fs.existsSync(join(cli.dir, "ours", "inbox", "b.json"))).toBe(true);
});

test("--wait ends when the supervisor refuses an id that differs from a taken one in case only", async () => {
  const pool = newPool();
  await pool.start(["--paused"]);
  const first = pool.spawn(["enqueue", "--id", "Job", "--wait", "--", "true"]);
  await waitFor(() => pool.supervisor()?.waiting?.runnable === 1, { what: "the waiting task" });
  const asTask = ["enqueue", "--id", "JOB", "--wait", "--", "true"];
  const waiting = await pool.run(asTask);
  expect([waiting.code, waiting.stdout]).toEqual([1, "JOB\n"]);
  expect(waiting.stderr).toContain('JOB failed: a task "Job" waits already');
  await pool.run(["resume"]);
  expect((await first.ended).exitCode).toBe(0);
  expect((await pool.run(asTask)).stderr).toContain('JOB failed: a task "JOB" is there already');
  const lines = join(pool.dir, "lines.ndjson");
  fs.writeFileSync(lines, '{"exec":["true"]}\n');
  const asBatch = ["enqueue", "--batch", "--file", lines, "--id", "jOB", "--wait"];
  const batch = await pool.run(asBatch);
  expect([batch.code, batch.stderr]).toEqual([1, expect.stringContaining("jOB failed: ")]);
  // A refusal of the very same id is none of the task that holds it, nor are older ones of what comes next.
  fs.rmSync(join(pool.outbox, "Job_result.json"));
  expect(await pool.run(asTask)).toMatchObject({ code: 0, stdout: "JOB\n" });
});

test("wait does not take a running task for one whose id differs in case", async () => {
  const pool = newPool();
  await pool.start();
  pool.drop("Job", { exec: ["sleep", "60"] });
  await waitFor(() => fs.readdirSync(pool.processing).some((file) => file.includes("~w-")), {
    what: "the run",
  });
  expect((await pool.run(["wait", "JOB", "--timeout", "30"])).code).toBe(3);
});

test("a whole command line in one word is accepted, with a hint at sh -c", async () => {
  const cli = newCli();
  const told = await cli(["enqueue", "--id", "a", "--", "echo 'hi' && ls"]);
  expect(told.code).toBe(0);
  expect(told.stdout).toBe("a\n");
  expect(told.stderr).toContain(`did you mean: -- sh -c 'echo '\\''hi'\\'' && ls'\n`);
  const json = await cli(["enqueue", "--id", "b", "--json", "--", "echo hi"]);
  expect(JSON.parse(json.stdout)).toMatchObject({ id: "b", warnings: [expect.any(String)] });
  // What is there under this very name is meant, and so is a program with arguments.
  fs.writeFileSync(join(cli.dir, "my tool"), "#!/bin/sh\n", { mode: 0o755 });
  for (const argv of [["./my tool"], ["echo", "a && b"], ["ls"]])
    expect((await cli(["enqueue", "--", ...argv])).stderr, argv.join(" ")).toBe("");
});

test("a task that names an agent is refused where config.yaml has others, and accepted as a file", async () => {
  const cli = newCli();
  fs.writeFileSync(join(cli.dir, "lines"), "x\n");
  const nobody = ["enqueue", "--agent", "nobody"];
  // Without any agent, the program that runs the pool may bring one.
  expect((await cli([...nobody, "--id", "early", "--prompt", "x"])).stderr).toContain(
    'no agent "nobody" is configured, so the task waits until one is',
  );
  put(cli, "config.yaml", "agents: [{name: coder, kind: claude}, {name: rev, kind: claude}]\n");
  const words = /ErrUsage: no agent "nobody" is configured\n {2}do: agents: coder, rev\n/;
  for (const way of [
    ["--prompt", "x"],
    ["--payload", "1"],
    ["--each", "lines"],
    ["--like", "early"],
  ]) {
    const { code, stdout, stderr } = await cli([...nobody, ...way]);
    expect({ code, stdout }, way.join(" ")).toEqual({ code: 2, stdout: "" });
    expect(stderr).toMatch(words);
  }
  const near = await cli(["enqueue", "--agent", "codre", "--prompt", "x"]);
  expect(near.stderr).toContain(
    'no agent "codre" is configured\n  do: did you mean --agent coder?',
  );
  const second = await cli([
    "enqueue",
    "--agent",
    "coder",
    "--fallback",
    "nobody",
    "--prompt",
    "x",
  ]);
  expect([second.code, second.stderr]).toEqual([
    2,
    expect.stringContaining('"nobody" is no agent'),
  ]);
  put(cli, "mailbox/inbox/dropped.json", '{"agent": "nobody", "prompt": "x"}');
  expect((await cli(["why", "dropped"])).stdout).toContain('cannot run: no agent "nobody"');
});

test("a task that names no agent, and for which none is configured, is accepted with a warning", async () => {
  const cli = newCli();
  put(cli, "config.yaml", "agents: [{name: coder, kind: claude, capabilities: [code]}]\n");
  const enqueue = async (...args: string[]): Promise<string> => {
    const told = await cli(["enqueue", "--prompt", "x", ...args]);
    expect(told.code).toBe(0);
    return told.stderr;
  };
  const waits = "so the task waits until one is";
  expect(await enqueue()).toContain(`no default agent is configured, ${waits}`);
  expect(await enqueue("--cap", "paint")).toContain(
    `no agent has the capabilities paint, ${waits}`,
  );
  for (const args of [
    ["--agent", "coder"],
    ["--cap", "code"],
  ])
    expect(await enqueue(...args)).toBe("");
});

test("a program for an agent that cannot run it is refused, however it comes", async () => {
  const cli = newCli();
  put(cli, "config.yaml", "agents: [{name: coder, kind: claude}, {name: far, kind: remote}]\n");
  fs.writeFileSync(join(cli.dir, "lines"), '{"agent": "nosuch", "exec": ["date"]}\n');
  const ways = [
    ["--agent", "coder", "--", "date"],
    ["--agent", "nosuch", "--", "date"],
    ["--agent", "nosuch", "--shell", "date"],
    ["--agent", "nosuch", "--each", "lines", "--", "echo"],
    ["--file", "lines"],
  ];
  for (const way of ways) {
    const { code, stderr, stdout } = await cli(["enqueue", ...way]);
    expect([code === 0, stdout], way.join(" ")).toEqual([false, ""]);
    expect(stderr).toMatch(/no agent "nosuch" is configured|agent coder is of kind claude/);
  }
  // A machine decides which programs it takes.
  expect((await cli(["enqueue", "--id", "a", "--agent", "far", "--", "date"])).code).toBe(0);
  expect(read(cli, "a")).not.toHaveProperty("cwd");
});

test("a program for other machines gets the directory that was said, and no other", async () => {
  const cli = newCli();
  put(cli, "config.yaml", "cluster: {groups: {render: gpu}}\n");
  fs.writeFileSync(join(cli.dir, "lines"), "x\n");
  const cwdOf = async (id: string, file: string, ...more: string[]) => {
    expect((await cli(["enqueue", "--id", id, ...more])).code).toBe(0);
    return read(cli, file)["cwd"];
  };
  const group = ["--group", "render"];
  expect(await cwdOf("a", "a", ...group, "--", "date")).toBeUndefined();
  expect(await cwdOf("b", "b", ...group, "--cwd", "/srv", "--", "date")).toBe("/srv");
  expect(await cwdOf("c", "c.1", ...group, "--each", "lines", "--", "date")).toBeUndefined();
  expect(await cwdOf("d", "d", "--group", "other", "--", "date")).toBe(cli.dir);
});

test("a group with a name much like a known one is accepted, with a warning", async () => {
  const cli = newCli();
  put(cli, "config.yaml", "groups: {train: {slots: 1}}\ncluster: {groups: {render: gpu}}\n");
  const told = async (group: string): Promise<string> =>
    (await cli(["enqueue", "--group", group, "--", "date", "now"])).stderr;
  expect(await told("rendre")).toContain(
    "--group rendre: config.yaml has no such group; did you mean render?",
  );
  expect(await told("trian")).toContain("did you mean train?");
  for (const group of ["render", "train", "nightly"]) expect(await told(group)).toBe("");
});

test("--after with an id that neither a tray nor the plan knows is accepted, with a warning", async () => {
  const cli = newCli();
  put(cli, "roadmap.yaml", "nodes:\n  - { id: deploy-eu, exec: [make] }\n");
  put(cli, "mailbox/outbox/build_result.json", { task_id: "build", status: "completed" });
  put(cli, "mailbox/inbox/Lint.json", { exec: ["true"] });
  const told = await cli(["enqueue", "--after", "biuld", "--after", "deploy-ue", "--", "true"]);
  expect(told.code).toBe(0);
  expect(told.stderr).toContain("--after biuld: no task and no node of the plan has this id");
  expect(told.stderr).toContain("did you mean build?");
  expect(told.stderr).toContain("did you mean deploy-eu?");
  const after = ["--after", "build", "--after", "Deploy-EU", "--after", "lint"];
  expect((await cli(["enqueue", ...after, "--", "true"])).stderr).toBe("");
});
