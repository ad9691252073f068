/** What doctor says of coding agents: what their programs can do, what they can reach, what they cost, whether they may start. */
import fs from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { type Cli, newCli, put } from "../../cli/run-cli.ts";
import { takeSome } from "../../support/take-some.ts";
import { closeAccount, doctor, program, standIn } from "./doctor.ts";

takeSome();

const runsOf = (cli: Cli, kind: string): number =>
  fs.readFileSync(join(cli.dir, `${kind}-runs`), "utf8").split("\n").length - 1;

const CLAUDE = {
  tasks: {
    "/compact": [[{ compact: true }]],
    background: [[{ run: "sleep 0.2", background: true }, { say: "It runs." }]],
  },
  turns: [[{ say: "ok" }]],
};

it("says nothing of coding agents where there are none", async () => {
  const cli = newCli();
  await cli(["init"]);
  const { of } = await doctor(cli, [], { PATH: "/usr/bin:/bin" });
  for (const name of ["claude", "codex", "sandbox", "prices"]) expect(of(name)).toEqual([]);
});

it("tries a program out once for each version, and remembers what it can do", async () => {
  const cli = newCli();
  const path = standIn(cli, "claude", CLAUDE);
  put(cli, "config.yaml", `agents: [{name: ada, kind: claude, program: ${path}}]\n`);
  const first = await doctor(cli);
  expect(first.of("claude")).toMatchObject([
    {
      status: "ok",
      message: `${path} 9.8.7 (used by ada): stream input, echo of messages, resume, compaction, background tasks, usage`,
    },
  ]);
  const runs = runsOf(cli, "claude");
  expect((await doctor(cli)).of("claude")).toEqual(first.of("claude"));
  expect(runsOf(cli, "claude")).toBe(runs + 1);
  await doctor(cli, ["--probe"]);
  expect(runsOf(cli, "claude")).toBe(2 * runs + 1);
  standIn(cli, "claude", CLAUDE, "9.9.0");
  expect((await doctor(cli)).of("claude")[0]?.message).toContain("9.9.0");
  expect(runsOf(cli, "claude")).toBe(3 * runs + 1);
});

it("says in a line each what a version cannot do", async () => {
  const cli = newCli();
  const script = {
    tasks: { "Once more": [[{ fail: 400 }]], background: [[{ say: "no" }]] },
    turns: [[{ say: "ok" }]],
  };
  put(
    cli,
    "config.yaml",
    `agents: [{name: a, kind: claude, program: ${standIn(cli, "claude", script)}}]\n`,
  );
  const { code, of } = await doctor(cli);
  expect(of("claude").map(({ status }) => status)).toEqual(["ok", "warn", "warn", "warn"]);
  expect(
    of("claude")
      .map(({ message }) => message)
      .join("\n"),
  ).toContain("this version has no resume: a run that was interrupted begins anew");
  expect(code).toBe(0);
});

it("knows what codex can do, and that it says no price", async () => {
  const cli = newCli();
  const path = standIn(cli, "codex", { turns: [[{ say: "ok" }]] });
  const agents = (model: string): string =>
    `agents: [{name: bob, kind: codex, program: ${path}, model: ${model}, permissions: {mode: full}}]\n`;
  put(cli, "config.yaml", `${agents("gpt-x")}prices: {gpt-x: {input_usd: 1, output_usd: 2}}\n`);
  const priced = await doctor(cli);
  expect(priced.of("codex")).toMatchObject([
    { status: "ok", message: expect.stringContaining("JSON stream, resume, usage, rollout file") },
  ]);
  expect(priced.of("prices")).toEqual([]);
  put(cli, "config.yaml", agents("gpt-y"));
  expect((await doctor(cli)).of("prices")).toMatchObject([
    { status: "warn", message: expect.stringContaining("has none for gpt-y") },
  ]);
});

it.each([
  ["hangs when asked its version", "exec sleep 600", "it did not end within"],
  ["prints rubbish for a version", "echo hello", "to --version it says hello"],
  [
    "prints rubbish for a stream",
    'case "$1" in --version) echo 1.2.3;; *) head -c 100000 /dev/urandom; exit 3;; esac',
    "1.2.3 gives no good answer to a test: it ended without an answer (exit code 3)",
  ],
])("reports a program that %s", async (_, text, said) => {
  const cli = newCli();
  const path = program(cli, "claude", text);
  put(cli, "config.yaml", `agents: [{name: a, kind: claude, program: ${path}}]\n`);
  const { code, of } = await doctor(cli);
  expect(of("claude")).toMatchObject([{ status: "fail", message: expect.stringContaining(said) }]);
  expect(code).toBe(1);
});

it("only warns of a broken program that no agent uses", async () => {
  const cli = newCli();
  await cli(["init"]);
  program(cli, "codex", "exit 1");
  const { code, of } = await doctor(cli, [], { PATH: `${cli.dir}:${process.env["PATH"]}` });
  expect(of("codex")).toMatchObject([{ status: "warn" }]);
  expect(code).toBe(0);
});

it("fails where the program of an agent is not there", async () => {
  const cli = newCli();
  put(cli, "config.yaml", "agents: [{name: a, kind: codex, program: no-such-codex}]\n");
  const { code, of } = await doctor(cli);
  expect(of("codex")).toMatchObject([{ message: "a: there is no program no-such-codex" }]);
  expect(code).toBe(1);
});

it("says which agents can reach the state tree", async () => {
  const cli = newCli();
  const path = standIn(cli, "codex", { turns: [[{ say: "ok" }]] });
  const agent = (name: string, mode: string, more = ""): string =>
    `{name: ${name}, kind: codex, program: ${path}, permissions: {mode: ${mode}${more}}}`;
  const agents = [
    agent("free", "full"),
    agent("inside", "edit", `, allow: [${cli.dir}]`),
    agent("reader", "read"),
  ];
  put(cli, "config.yaml", `agents: [${agents.join(", ")}]\n`);
  const { code, of } = await doctor(cli);
  expect(of("sandbox")).toMatchObject([
    { status: "warn", message: expect.stringContaining("without a sandbox (free)") },
    { status: "fail", message: expect.stringContaining("inside does not start") },
  ]);
  expect(code).toBe(1);
});

it("says until when the account of an agent is closed", async () => {
  const cli = newCli();
  const path = standIn(cli, "claude", CLAUDE);
  put(
    cli,
    "config.yaml",
    `agents: [{name: a, kind: claude, program: ${path}, account: work}, {name: b, kind: claude, program: ${path}}]\n`,
  );
  await closeAccount(cli, "work", "5-hour limit");
  const { of } = await doctor(cli);
  expect(of("account work")).toMatchObject([
    { status: "warn", message: expect.stringMatching(/no run starts before .*: 5-hour limit/) },
  ]);
  expect(of("account default")).toMatchObject([{ status: "ok", message: "open" }]);
});

it("warns of accounts of an agent that lead to one login", async () => {
  const cli = newCli();
  const path = standIn(cli, "codex", { turns: [[{ say: "ok" }]] });
  const agent = (name: string, accounts: string): string =>
    `{name: ${name}, kind: codex, program: ${path}, permissions: {mode: full}, accounts: [${accounts}]}`;
  const agents = [agent("a", "work, home, spare"), agent("b", "work, home"), agent("c", "new, x")];
  const homes = "work: {env: {CODEX_HOME: /w}}, home: {env: {CODEX_HOME: /h}}";
  const same = "spare: {env: {CODEX_HOME: /w}, reserve_pct: 20}";
  put(cli, "config.yaml", `agents: [${agents.join(", ")}]\naccounts: {${homes}, ${same}}\n`);
  const { code, of } = await doctor(cli);
  expect(of("accounts")).toMatchObject([
    { status: "warn", message: expect.stringContaining("a: work and spare lead to one login") },
    // Accounts without variables of their own use the login of the agent.
    { status: "warn", message: expect.stringContaining("c: new and x lead to one login") },
  ]);
  expect(code).toBe(0);
});

it("has a program of kind acp answer a mock, says what it does, and remembers that", async () => {
  const cli = newCli();
  const ask = { model: "messages", text: "go", tells: true };
  const path = standIn(cli, "acp", { turns: [[ask, { say: "ok" }]] });
  const other = program(cli, "other", "exit 1");
  put(
    cli,
    "config.yaml",
    `agents: [{name: a, kind: acp, command: [${path}], trust: end_turn}, {name: b, kind: acp, command: [${other}]}]\n`,
  );
  const all = { name: "acp", status: "ok" };
  const before = await doctor(cli, ["a"]);
  expect(before.of("acp")).toEqual([{ ...all, message: `${path} fake 1.0.0 (used by a): resume` }]);
  const can =
    "address of its service from outside, resume, usage, end with its input, word about a used up quota";
  const after = [{ ...all, message: `${path} fake 1.0.0 (used by a): ${can}` }];
  expect((await doctor(cli, ["--probe", "a"])).of("acp")).toEqual(after);
  const runs = runsOf(cli, "acp");
  expect((await doctor(cli, ["a"])).of("acp")).toEqual(after);
  expect(runsOf(cli, "acp")).toBe(runs + 1);
  const { code, of } = await doctor(cli, ["--probe", "c"]);
  expect(code).toBe(1);
  expect(of("agents")).toMatchObject([{ status: "fail" }]);
});

it("says of a program of kind acp that it is silent about a quota, and that it takes no address", async () => {
  const cli = newCli();
  const silent = standIn(cli, "acp", { turns: [[{ model: "messages" }, { say: "ok" }]] });
  const config = (path: string): string =>
    `agents: [{name: a, kind: acp, command: [${path}], trust: end_turn}]\n`;
  put(cli, "config.yaml", config(silent));
  expect((await doctor(cli, ["--probe", "a"])).of("acp")).toMatchObject([
    { status: "ok" },
    { status: "warn", message: expect.stringContaining("no word about a used up quota") },
  ]);
  const own = standIn(cli, "acp", { turns: [[{ say: "ok" }]] });
  put(cli, "config.yaml", config(own));
  expect((await doctor(cli, ["--probe", "a"])).of("acp")).toMatchObject([
    { status: "ok" },
    { status: "warn", message: expect.stringContaining("no address of its service from outside") },
  ]);
});
