/** Which state tree is meant: the one that is named, else `state` here or in the nearest directory above. */
import fs from "node:fs";
import { join, relative } from "node:path";
import { describe, expect, it } from "vitest";
import { EXIT } from "../../src/cli/shell/exit-codes.ts";
import { ErrMailboxDir, Mailbox } from "../../src/index.ts";
import { type Cli, newCli, put } from "./run-cli.ts";

const SUB = "src/deep";

/** A tree in the directory of the command line, and a directory below. */
async function withTree(): Promise<Cli> {
  const cli = newCli();
  expect((await cli(["init"])).code).toBe(0);
  fs.mkdirSync(join(cli.dir, SUB), { recursive: true });
  return cli;
}

const here = { cwd: SUB };
const isEmpty = (cli: Cli): boolean => fs.readdirSync(join(cli.dir, SUB)).length === 0;

describe("in a directory below a state tree", () => {
  it("every command means that tree, and says so where it may surprise", async () => {
    const cli = await withTree();
    const state = join(cli.dir, "state");
    const enqueued = await cli(["enqueue", "--id", "a", "--", "pwd"], here);
    expect(enqueued).toEqual({
      code: 0,
      stdout: "a\n",
      stderr: `mailchute: the state tree is ${state}, found above this directory\n`,
    });
    expect(fs.readdirSync(cli.inbox)).toContain("a.json");
    expect((await cli(["status"], here)).stdout).toContain(
      `${state} (found above this directory)\n`,
    );
    expect(JSON.parse((await cli(["status", "--json"], here)).stdout)).toMatchObject({
      state_dir: state,
      counts: { waiting: { count: 1 } },
    });
    const { stdout } = await cli(["doctor"], { ...here, env: { COLUMNS: "500" } });
    expect(stdout).toContain(`${state} (found above this directory)\n`);
    const unknown = await cli(["show", "b"], here);
    expect(unknown.stderr).toContain(`\n  state: ${state} (found above this directory)\n`);
    const json = await cli(["show", "b", "--json"], here);
    expect(JSON.parse(json.stderr).error.state_dir).toBe(state);
    const ran = await cli(["run", "--drain"], here);
    expect(ran.stderr).toContain(`watching ${cli.inbox} with`);
    expect((await cli(["wait", "a"], here)).stdout).toBe("a  completed\n");
    expect(isEmpty(cli)).toBe(true);
  });

  it("a directory named state that is no state tree is passed over", async () => {
    const cli = await withTree();
    fs.mkdirSync(join(cli.dir, SUB, "state", "control"), { recursive: true });
    expect((await cli(["config"], here)).stderr).toContain(join(cli.dir, "state", "config.yaml"));
  });

  it("init makes a tree of its own, and says that there is another", async () => {
    const cli = await withTree();
    const { stdout, stderr } = await cli(["init"], here);
    expect(stdout).toContain(`state tree  ${join(cli.dir, SUB, "state")}\n`);
    expect(stderr).toBe(
      `mailchute: ${join(cli.dir, "state")} is a state tree, too; from here the new one is used\n`,
    );
    expect((await cli(["enqueue", "--id", "a", "--", "true"], here)).stderr).toBe("");
    expect(fs.existsSync(join(cli.dir, SUB, "state/mailbox/inbox/a.json"))).toBe(true);
  });

  it("what is named is taken as it is given, and a tree above the home directory is not", async () => {
    const cli = await withTree();
    const state = join(cli.dir, SUB, "state");
    const made = `mailchute: made a new state tree at ${state}\n`;
    const enqueue = (env: Record<string, string>, ...more: string[]) =>
      cli(["enqueue", ...more, "--", "true"], { ...here, env });
    expect((await enqueue({ MAILCHUTE_STATE: "state" })).stderr).toBe(made);
    fs.rmSync(state, { recursive: true });
    expect((await enqueue({}, "--state", "state")).stderr).toBe(made);
    fs.rmSync(state, { recursive: true });
    expect((await enqueue({ HOME: join(cli.dir, "src") })).stderr).toBe(made);
  });
});

describe("where there is no state tree", () => {
  it("commands that look, and those that steer, make none, and say what to do", async () => {
    const lines = [
      "status",
      "ls",
      "show x",
      "events",
      "wait",
      "recover",
      "run --dry-run",
      "pause",
      "clean",
      "worker",
    ];
    const cli = newCli();
    const ended = await Promise.all(lines.map((line) => cli(line.split(" "))));
    for (const [index, { code, stderr, stdout }] of ended.entries()) {
      expect(stdout, lines[index]).toBe("");
      expect(stderr, lines[index]).toBe(
        "mailchute: ErrNoState: there is no state tree here, nor in a directory above\n" +
          `  where: ${join(cli.dir, "state")}\n` +
          "  do: run `mailchute init`, or name another place with --state or MAILCHUTE_STATE\n",
      );
      expect(code, lines[index]).toBe(3);
    }
    expect(fs.readdirSync(cli.dir)).toEqual([]);
  });

  it("a directory that is named and is none is refused, by doctor too", async () => {
    const cli = newCli();
    fs.mkdirSync(join(cli.dir, "other"));
    const flag = await cli(["status", "--state", "other"]);
    expect(flag.stderr).toContain("ErrNoState: this is no state tree\n");
    expect(flag.stderr).toContain("do: check --state; `mailchute init` makes a new one there\n");
    expect(flag.code).toBe(3);
    const env = await cli(["ls"], { env: { MAILCHUTE_STATE: "other" } });
    expect(env.stderr).toContain("do: check MAILCHUTE_STATE;");
    expect((await cli(["doctor", "--state", "other"])).code).toBe(1);
    expect(fs.readdirSync(join(cli.dir, "other"))).toEqual([]);
  });

  it("a tree that has only a plan is one also in the instant in which that is replaced", async () => {
    const cli = newCli();
    const plan = join(cli.dir, "site", "roadmap.yaml");
    fs.mkdirSync(join(cli.dir, "site", ".tmp"), { recursive: true });
    fs.writeFileSync(plan, "nodes: []\n");
    fs.renameSync(plan, join(cli.dir, "site", ".tmp", "roadmap.yaml.0-a-b-c.0.0.old"));
    expect((await cli(["ls", "--state", "site"])).code).toBe(0);
  });

  it("inside one of another name it tells how to name it", async () => {
    const cli = newCli();
    await cli(["init", "site"]);
    expect((await cli(["status"], { cwd: "site" })).stderr).toContain(
      "do: this directory itself is one: --state .\n",
    );
  });

  it("run and enqueue make one here, and say so", async () => {
    const cli = newCli();
    const made = `mailchute: made a new state tree at ${join(cli.dir, "state")}\n`;
    expect((await cli(["run", "--drain"])).stderr).toContain(made);
    fs.rmSync(join(cli.dir, "state"), { recursive: true });
    expect((await cli(["enqueue", "--", "true"])).stderr).toBe(made);
  });
});

it("where the system says ENOENT below a directory that is there, each verb ends at once, and so does the library", async () => {
  const cli = newCli();
  const nowhere = "/proc/nope/x";
  for (const args of [["init", nowhere], ["run"], ["worker"], ["enqueue", "--", "true"]]) {
    const state = args[0] === "init" ? [] : ["--state", nowhere];
    const { code, stderr } = await cli([...args.slice(0, 1), ...state, ...args.slice(1)]);
    const isMaker = args[0] !== "worker";
    expect(stderr, args[0]).toContain(isMaker ? "ErrMailboxDir" : "ErrNoState");
    expect(stderr, args[0]).not.toContain("made a new");
    expect(code, args[0]).toBe(isMaker ? EXIT.mailboxDir : EXIT.notFound);
  }
  expect(() => Mailbox.open(nowhere)).toThrow(ErrMailboxDir);
});

/** All that is in a directory: with its text when it is a file. */
function contentsOf(dir: string): Record<string, string> {
  const entries = fs.readdirSync(dir, { recursive: true, withFileTypes: true });
  return Object.fromEntries(
    entries.map((entry) => {
      const path = join(entry.parentPath, entry.name);
      return [relative(dir, path), entry.isFile() ? fs.readFileSync(path, "utf8") : "a directory"];
    }),
  );
}

it("commands that only look leave a tree as it is, also one that lacks much", async () => {
  const cli = newCli();
  put(cli, "roadmap.yaml", 'nodes:\n  - { id: a, exec: ["true"] }\n');
  const before = contentsOf(cli.dir);
  const lines = [
    "run --dry-run",
    "run --dry-run --once",
    "clean --dry-run",
    "recover --dry-run",
    "status",
    "ls",
    "show x",
    "logs x",
    "events",
    "wait",
    "config",
    "doctor",
    "roadmap check",
    "roadmap show",
    "roadmap next",
    "kv ls a",
    "kv get a b",
  ];
  for (const line of lines) {
    const { stderr } = await cli(line.split(" "));
    expect(stderr, line).not.toMatch(/ErrUsage|ErrBug|ErrMailboxDir/);
    expect(contentsOf(cli.dir), line).toEqual(before);
  }
  expect((await cli(["run", "--dry-run"])).stdout).toBe("would run a\n");
});

it("a dry run of clean sees what is old also where it may write nothing", async () => {
  const cli = newCli();
  const old = put(cli, "mailbox/outbox/a_result.json", {});
  fs.utimesSync(old, 0, 0);
  const { code, stdout } = await cli(["clean", "--dry-run", "--json"]);
  expect(JSON.parse(stdout)).toMatchObject({ dry_run: true, results: 1 });
  expect(code).toBe(0);
  expect(contentsOf(join(cli.dir, "state"))).toEqual({
    mailbox: "a directory",
    "mailbox/outbox": "a directory",
    "mailbox/outbox/a_result.json": "{}",
  });
});
