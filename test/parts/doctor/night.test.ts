/** doctor --night: what would fail in the night fails in the evening. */
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { type Cli, newCli, put } from "../../cli/run-cli.ts";
import { newRepository } from "../../support/git-repository.ts";
import { takeSome } from "../../support/take-some.ts";
import { closeAccount, doctor, standIn } from "./doctor.ts";

takeSome();

const text = (part: string): unknown => expect.stringContaining(part);

/** How often the question of `--night` was asked. */
function askedTimes(cli: Cli, kind: string): number {
  const lines = fs.readFileSync(join(cli.dir, `${kind}-runs`), "utf8").split("\n");
  return lines.filter((line) => line.includes("Answer with the word ok")).length;
}

function drop(cli: Cli, id: string, task: object): void {
  put(cli, `mailbox/inbox/${id}.json`, task);
}

it("asks one question for each account, and says what it took", async () => {
  const cli = newCli();
  const path = standIn(cli, "codex", { turns: [[{ say: "ok" }]] });
  const agent = (name: string, account: string): string =>
    `{name: ${name}, kind: codex, program: ${path}, account: ${account}, permissions: {mode: full}}`;
  put(
    cli,
    "config.yaml",
    `agents: [${agent("a", "one")}, ${agent("b", "one")}, ${agent("c", "two")}]\n`,
  );
  const { code, of } = await doctor(cli, ["--night"]);
  expect(of("turn")).toMatchObject([
    { status: "ok", message: text("a (account one) answers after") },
    { status: "ok", message: text("c (account two) answers after") },
  ]);
  expect(askedTimes(cli, "codex")).toBe(2);
  const asked = fs.readFileSync(join(cli.dir, "codex-runs"), "utf8");
  // It is asked without a right to change anything.
  expect(asked.split("\n").find((line) => line.includes("Answer with"))).toContain("read-only");
  expect(code).toBe(0);
});

it("says whom it asks before it waits for the answers", async () => {
  const cli = newCli();
  const path = standIn(cli, "claude", { turns: [[{ say: "ok" }]] });
  put(cli, "config.yaml", `agents: [{name: ada, kind: claude, program: ${path}}]\n`);
  const env = { HOME: cli.dir, XDG_STATE_HOME: join(cli.dir, "xdg") };
  const { stdout, stderr } = await cli(["doctor", "--night"], { env });
  expect(stderr).toBe("mailchute: asks ada one question; an answer may take 2 min\n");
  expect(stdout).toMatch(/^ok +settings .*\n(?:.*\n)+ok +turn +ada \(account default\) answers/m);
});

it("fails where an account is not let in", async () => {
  const cli = newCli();
  const script = { tasks: { "Answer with": [[{ fail: 401 }]] }, turns: [[{ say: "ok" }]] };
  const path = standIn(cli, "claude", script);
  put(cli, "config.yaml", `agents: [{name: ada, kind: claude, program: ${path}}]\n`);
  const { code, of } = await doctor(cli, ["--night"]);
  expect(of("turn")).toMatchObject([
    { status: "fail", message: text("ada (account default): auth") },
  ]);
  expect(code).toBe(1);
});

it("asks nothing while the account is closed", async () => {
  const cli = newCli();
  const path = standIn(cli, "codex", { turns: [[{ say: "ok" }]] });
  put(cli, "config.yaml", `agents: [{name: a, kind: codex, program: ${path}}]\n`);
  await closeAccount(cli, "default", "full");
  const { of } = await doctor(cli, ["--night"]);
  expect(of("turn")).toMatchObject([{ status: "warn", message: text("is not asked") }]);
  expect(askedTimes(cli, "codex")).toBe(0);
});

it("finds a sandbox that does not hold", async () => {
  const cli = newCli();
  const leave = [{ run: "echo 1 > inside; echo 1 > ../outside" }, { say: "ok" }];
  const script = { tasks: { "Try to leave": [leave] }, turns: [[{ say: "ok" }]] };
  const path = standIn(cli, "codex", script);
  put(cli, "config.yaml", `agents: [{name: bob, kind: codex, program: ${path}}]\n`);
  const { code, of } = await doctor(cli, ["--night"]);
  expect(of("sandbox").map(({ message }) => message)).toContain(
    "bob: a command in its sandbox could write outside its folder",
  );
  expect(code).toBe(1);
});

it("runs verify of the waiting tasks once for each kind, and names a red base", async () => {
  const cli = newCli();
  await cli(["init"]);
  const site = join(cli.dir, "site");
  fs.mkdirSync(site);
  const red = ["sh", "-c", "echo run >> red; echo '3 tests fail' >&2; exit 4"];
  for (let n = 1; n <= 3; n++)
    drop(cli, `t${n}`, { agent: "a", prompt: "mend", cwd: site, verify: [red] });
  drop(cli, "good", { agent: "a", prompt: "go", cwd: site, verify: [["true"]] });
  drop(cli, "plain", { exec: ["true"] });
  fs.writeFileSync(join(cli.inbox, "torn.json"), "{");
  const { code, of } = await doctor(cli, ["--night"], { PATH: "/usr/bin:/bin" });
  const found = of("verify").map(({ status, message }) => `${status}: ${message}`);
  expect(found.sort()).toEqual([
    `fail: \`${red.join(" ")}\` fails in ${site} before anything is changed, and would fail for 3 waiting tasks (exit code 4: 3 tests fail)`,
    `ok: \`true\` in ${site}, for 1 waiting task`,
  ]);
  expect(fs.readFileSync(join(site, "red"), "utf8")).toBe("run\n");
  expect(of("room")).toHaveLength(1);
  expect(code).toBe(1);
});

it("runs verify of tasks with a worktree in a clean checkout of their base, and says which check is flaky", async () => {
  const cli = newCli();
  await cli(["init"]);
  const site = join(cli.dir, "site");
  const repo = newRepository(site);
  repo.commit({
    "check.sh": "test -e ready && test -e mended || { echo 'it is broken'; exit 3; }\n",
  });
  // Only the checkout of a person has it.
  fs.writeFileSync(join(site, "mended"), "");
  const setup = ["touch", "ready"];
  const isolated = { agent: "a", prompt: "go", cwd: site, worktree: "auto", setup };
  put(cli, "config.yaml", "agents: [{name: a, kind: exec, program: sh}]\n");
  for (const id of ["one", "two"]) drop(cli, id, { ...isolated, verify: ["sh", "check.sh"] });
  const turns = join(cli.dir, "turns");
  const byTurns = ["sh", "-c", `test -e ${turns} || { touch ${turns}; exit 1; }`];
  drop(cli, "three", { ...isolated, verify: byTurns });
  drop(cli, "four", { ...isolated, verify: ["test", "-e", "ready"] });
  const { of } = await doctor(cli, ["--night"], { PATH: "/usr/bin:/bin" });
  const found = of("verify").map(({ status, message }) => `${status}: ${message}`);
  const where = `a clean checkout of ${repo.git("rev-parse", "HEAD").slice(0, 12)} of ${site}`;
  expect(found.sort()).toEqual([
    `fail: \`sh check.sh\` fails in ${where} before anything is changed, and would fail for 2 waiting tasks (exit code 3: it is broken)`,
    `ok: \`test -e ready\` in ${where}, for 1 waiting task`,
    `warn: \`${byTurns.join(" ")}\` in ${where} is flaky: it failed once and succeeded once, and would fail by turns for 1 waiting task (exit code 1: it printed nothing)`,
  ]);
  expect(repo.git("worktree", "list").split("\n")).toHaveLength(1);
});

it("says which trees are dirty, and which folders are not there", async () => {
  const cli = newCli();
  await cli(["init"]);
  const git = (...args: string[]) => execFileSync("git", args, { cwd: cli.dir });
  git("init", "-q", "clean");
  git("init", "-q", "dirty");
  fs.writeFileSync(join(cli.dir, "dirty", "new.txt"), "");
  for (const name of ["clean", "dirty", "missing"])
    drop(cli, name, { agent: "a", prompt: "go", cwd: join(cli.dir, name) });
  const { code, of } = await doctor(cli, ["--night"], { PATH: "/usr/bin:/bin" });
  const found = of("git tree").map(({ status, message }) => `${status}: ${message}`);
  expect(found.sort()).toEqual([
    `fail: ${join(cli.dir, "missing")} is not there, and tasks are to run in it`,
    `ok: ${join(cli.dir, "clean")} is clean`,
    `warn: ${join(cli.dir, "dirty")} has 1 uncommitted change: an agent's changes are mixed with them`,
  ]);
  expect(code).toBe(1);
});
