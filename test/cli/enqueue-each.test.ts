/** `enqueue --each`, `--shell`, `--verify`, `--dry-run`, and values from stdin. */
import { spawnSync } from "node:child_process";
import fs from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { newPool } from "../support/pool.ts";
import { newCli } from "./run-cli.ts";

/** The tasks that `--dry-run` prints. */
async function dryRun(args: string[], input: string): Promise<Record<string, unknown>[]> {
  const cli = newCli();
  const { code, stdout, stderr } = await cli(["enqueue", "--dry-run", ...args], { input });
  expect(stderr).toBe("");
  expect(code).toBe(0);
  expect(fs.existsSync(join(cli.dir, "state"))).toBe(false);
  return stdout
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line));
}

async function complaint(args: string[], input: string | Buffer): Promise<string> {
  const cli = newCli();
  fs.writeFileSync(join(cli.dir, "lines"), input);
  const { code, stdout, stderr } = await cli(["enqueue", "--each", "lines", ...args]);
  expect(stdout).toBe("");
  expect(code).toBe(2);
  expect(fs.existsSync(cli.inbox)).toBe(false);
  return stderr;
}

test("a line takes the place of {} as it is, whatever it holds, and {#} is its number", async () => {
  const lines = ["a b", "", "$& $1 {} 'x' \"y\"", "  ünï\r"];
  const tasks = await dryRun(
    ["--each", "-", "--id", "b", "--", "echo", "-{}-", "{#}"],
    lines.join("\n"),
  );
  expect(tasks).toMatchObject([
    { id: "b.1", exec: ["echo", "-a b-", "1"] },
    { id: "b.2", exec: ["echo", "-$& $1 {} 'x' \"y\"-", "2"] },
    { id: "b.3", exec: ["echo", "-  ünï-", "3"] },
  ]);
});

test("a program without {} gets the line as its last argument", async () => {
  const tasks = await dryRun(["--each", "-", "--", "wc", "-l"], "one\ntwo\n");
  expect(tasks.map((task) => task["exec"])).toEqual([
    ["wc", "-l", "one"],
    ["wc", "-l", "two"],
  ]);
});

test("zero bytes part the items with -0, so that an item may hold line breaks", async () => {
  const tasks = await dryRun(["--each", "-", "-0", "--", "cat"], "a\nb\0c\0");
  expect(tasks.map((task) => task["exec"])).toEqual([
    ["cat", "a\nb"],
    ["cat", "c"],
  ]);
});

test("a coding agent is asked the line, or a prompt that holds it", async () => {
  const agent = ["--each", "-", "--agent", "coder"];
  expect(await dryRun(agent, "mend it\n")).toMatchObject([{ agent: "coder", prompt: "mend it" }]);
  const options = [
    "--prompt",
    "test {}",
    "--title",
    "{#}: {}",
    "--cwd",
    "/src/{}",
    "--env",
    "F={}",
  ];
  expect(await dryRun([...agent, ...options], "x\n")).toMatchObject([
    { prompt: "test x", title: "1: x", cwd: "/src/x", env: { F: "x" } },
  ]);
});

test("the same line has the same id with --dedup, wherever it stands", async () => {
  const args = ["--each", "-", "--dedup", "lint {}", "--cwd", "/", "--", "lint"];
  const [a, b] = await dryRun(args, "a\nb\n");
  const [b2, a2] = await dryRun(args, "b\na\n");
  expect([a2, b2]).toEqual([a, b]);
  expect(a?.["id"]).not.toBe(b?.["id"]);
});

test("nothing goes in when one line is bad, and the message names the line", async () => {
  expect(await complaint(["--", "x"], "a\nb\0\n")).toMatch(/line 2 holds a zero byte.*\n.*-0/);
  const notText = Buffer.from([0x61, 0x0a, 0xff, 0x0a]);
  expect(await complaint(["--", "x"], notText)).toContain("line 2 is not UTF-8");
  const badId = await complaint(["--id", "a b", "--", "x"], "a\n");
  expect(badId).toContain("line 1: ");
  expect(await complaint(["--", "x"], "\n \n")).toContain("there is no line");
  const many = "x\n".repeat(100_001);
  expect(await complaint(["--", "x"], many)).toMatch(/more than 100000 lines.*\n.*--batch/);
});

test("what would make all tasks the same, or run a line as a command, is refused", async () => {
  const refusals = [
    [["--shell", "rm {}"], "a command of its own"],
    [["--agent", "a", "--prompt", "go"], "no option holds {}"],
    [["--dedup", "k", "--", "x"], "--dedup holds no {}"],
    [["--shell", "x", "--", "y"], "exclude each other"],
    [["--batch", "--", "y"], "--each and --batch exclude each other"],
    [[], "nothing to run"],
  ] as const;
  for (const [args, words] of refusals)
    expect(await complaint([...args], "l\n"), args.join(" ")).toContain(words);
});

test("the lines run, a shell finds each in $1, and sending them again changes nothing", async () => {
  const pool = newPool();
  fs.writeFileSync(join(pool.dir, "lines"), "a  b\n$(touch evil)\n");
  const send = [
    ..."enqueue --each lines --id n --shell".split(" "),
    'printf "%s=%s\\n" "$2" "$1" >> out; echo "$1"',
    "--verify",
    "test -s out",
  ];
  expect((await pool.run(send)).stdout).toBe("n.1\nn.2\n");
  const { code } = await pool.run(["run", "--drain", "--workers", "1", "--no-live"]);
  expect(code).toBe(0);
  const out = fs.readFileSync(join(pool.dir, "out"), "utf8").trimEnd().split("\n").sort();
  expect(out).toEqual(["1=a  b", "2=$(touch evil)"]);
  expect(fs.existsSync(join(pool.dir, "evil"))).toBe(false);
  const again = await pool.run(send);
  expect(again).toMatchObject({ code: 0, stdout: "n.1\nn.2\n" });
  expect(again.stderr).toContain("0 submitted, 2 unchanged: there already");
});

test("a task fails when a command line of --verify does", async () => {
  const pool = newPool();
  const args = ["enqueue", "--id", "v", "--max-attempts", "1", "--verify", "test -e made && false"];
  await pool.run([...args, "--shell", "touch made"]);
  await pool.run(["run", "--drain", "--no-live"]);
  expect(await pool.error("v")).toMatchObject({ kind: "verify" });
  expect(fs.existsSync(join(pool.dir, "made"))).toBe(true);
});

test("a prompt or a payload comes from stdin, and only one of them", async () => {
  const cli = newCli();
  const sent = await cli(["enqueue", "--agent", "a", "--prompt", "-", "--id", "p"], {
    input: "mend\nthis\n",
  });
  expect(sent).toMatchObject({ code: 0, stdout: "p\n" });
  const task = JSON.parse(fs.readFileSync(join(cli.inbox, "p.json"), "utf8"));
  expect(task).toMatchObject({ prompt: "mend\nthis\n", agent: "a" });
  const exact = await cli(["enqueue", "--agent", "a", "--payload", "-", "--id", "n"], {
    input: '{"n": 1.000}',
  });
  expect(exact.code).toBe(0);
  expect(fs.readFileSync(join(cli.inbox, "n.json"), "utf8")).toContain('"payload":{"n": 1.000}');
  const both = await cli(["enqueue", "--prompt", "-", "--payload", "-"]);
  expect(both.stderr).toContain("--prompt - and --payload - both want to read stdin");
  const empty = await cli(["enqueue", "--prompt", "-"], { input: "\n" });
  expect(empty).toMatchObject({ code: 2, stderr: expect.stringContaining("stdin is empty") });
});

test("{.}, {/} and {//} are parts of a path", async () => {
  const tasks = await dryRun(
    ["--each", "-", "--title", "{/}", "--", "cp", "{}", "{//}/out/{.}.txt"],
    "a/b c.tar.gz\n/x.png\nplain\n.hidden\n",
  );
  expect(tasks.map(({ title, exec }) => [title, (exec as string[])[2]])).toEqual([
    ["b c.tar.gz", "a/out/a/b c.tar.txt"],
    ["x.png", "//out//x.txt"],
    ["plain", "./out/plain.txt"],
    [".hidden", "./out/.hidden.txt"],
  ]);
  const one = await dryRun(["--each", "-", "--", "wc", "{.}"], "a.b\n");
  expect(one[0]?.["exec"]).toEqual(["wc", "a"]);
});

test("--verify takes the placeholders, and no line becomes a command", async () => {
  const cli = newCli();
  const evil = `$(touch pwned) '"; touch pwned; '.txt`;
  for (const [line, wanted] of [
    ["a {}", `a ${evil}`],
    ['a "{}|{/}"', `a ${evil}|${evil}`],
    ["a '{}'", `a ${evil}`],
    ["a '{}'{}\"{}\"", `a ${evil}${evil}${evil}`],
    ["{.} {#}", `${evil.slice(0, -4)} 1`],
    ["\\' {}", `' ${evil}`],
    ["none", "none"],
  ] as const) {
    const verify = `printf '%s\\n' ${line}`;
    const args = ["enqueue", "--dry-run", "--each", "-", "--verify", verify, "--", "true"];
    const { stdout } = await cli(args, { input: evil });
    const [argv = []] = (JSON.parse(stdout) as { verify: string[][] }).verify;
    const ran = spawnSync(argv[0] ?? "", argv.slice(1), { cwd: cli.dir, encoding: "utf8" });
    expect(ran.stdout.split("\n").join(" ").trim(), line).toBe(wanted);
    expect(fs.existsSync(join(cli.dir, "pwned")), line).toBe(false);
  }
});

test("--dry-run --file checks all lines, prints the good ones and submits nothing; also of a batch", async () => {
  const cli = newCli();
  const good = '{"exec":["true"],"priority":1}';
  const input = `${good}\n{"exec":[]}\n{"exec":["true"],"retries":1}\n`;
  const tried = await cli(["enqueue", "--dry-run", "--file", "-"], { input });
  expect(tried).toMatchObject({ code: 1, stdout: `${good}\n` });
  expect(tried.stderr).toContain("line 2: exec: ");
  expect(tried.stderr).toContain('line 3: "retries" is no field of a task');
  expect(tried.stderr).toContain("2 lines would be refused");
  const batch = await cli(["enqueue", "--dry-run", "--batch", "--file", "-"], { input });
  expect(batch).toMatchObject({ code: 1, stdout: "" });
  expect(batch.stderr).toContain('line 1: "priority" has no effect in a line of a batch');
  const fine = await cli(["enqueue", "--dry-run", "--file", "-"], { input: good });
  expect(fine).toEqual({ code: 0, stdout: `${good}\n`, stderr: "" });
  expect(fs.existsSync(join(cli.dir, "state"))).toBe(false);
  fs.writeFileSync(join(cli.dir, "todo.md"), "- [ ] a\n");
  const list = await cli(["enqueue", "--dry-run", "--agent", "a", "--file", "todo.md"]);
  expect(list).toMatchObject({ code: 2, stdout: "" });
});

test("--wait prints what the program wrote, after the id, also of one that failed", async () => {
  const pool = newPool();
  await pool.start();
  const text = "\u001b[1mbold\u001b[0m\n\n  ünï";
  const args = ["enqueue", "--wait", "--id", "a", "--", "printf", "%s", text];
  expect(await pool.run(args)).toMatchObject({ code: 0, stdout: `a\n${text}` });
  const failing = ["enqueue", "--wait", "--id", "b", "--max-attempts", "1"];
  const failed = await pool.run([...failing, "--shell", "seq 100000; exit 7"]);
  expect(failed.code).toBe(1);
  expect(failed.stdout).toHaveLength("b\n".length + 588_895);
  expect(failed.stderr).toContain("b failed");
  const json = await pool.run(["enqueue", "--wait", "--id", "c", "--json", "--", "date"]);
  expect(JSON.parse(json.stdout)).toMatchObject({ id: "c", status: "completed" });
});
