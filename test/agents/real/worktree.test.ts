/** The real claude and codex in worktrees, against the mock API; codex also in its own sandbox, which lets it write no commit. */
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { hasDebianPackage } from "../../support/debian-package.ts";
import { newRepository, type TestRepository } from "../../support/git-repository.ts";
import { waitFor } from "../../support/wait-for.ts";
import { type AgentBench, KINDS, type Kind, newAgentBench } from "./agent-bench.ts";
import { programPath } from "./install.ts";
import { LONG_TOOL } from "./start.ts";

const SLOW_MS = 120_000;
const HALF = "echo half > half.txt";
const REST = "test -e half.txt && echo rest > rest.txt";

interface Place extends AgentBench {
  repo: TestRepository;
  worktree: string;
}

async function placeOf(kind: Kind, runs: readonly string[], agent: object = {}): Promise<Place> {
  const steps = [...runs.map((run) => ({ run })), { say: "Done.", times: 1000 }];
  const bench = await newAgentBench(kind, steps, { agent: { worktree: "auto", ...agent } });
  const { pool } = bench;
  const repo = newRepository(join(pool.dir, "repo"));
  return { ...bench, repo, worktree: join(fs.realpathSync(pool.state), "worktrees", "task") };
}

const drop = ({ pool }: AgentBench, more: object = {}): void =>
  pool.drop("task", {
    agent: "coder",
    prompt: "go: task",
    title: "Two files",
    cwd: "repo",
    ...more,
  });

function filesOf({ repo }: Place): string[] {
  return repo.git("ls-tree", "-r", "--name-only", "mailchute/task").split("\n");
}

describe.each(KINDS)("%s", (kind) => {
  it("writes in its worktree and is verified there, and its work is a commit on its branch", async () => {
    const place = await placeOf(kind, [HALF, REST]);
    const { pool, repo } = place;
    drop(place, { verify: ["grep", "-q", "rest", "rest.txt"], expect_files: ["half.txt"] });
    await pool.start();
    expect(await pool.result("task", SLOW_MS)).toMatchObject({ output: "Done.", attempts: 1 });
    expect(filesOf(place)).toEqual([".gitignore", "README.md", "half.txt", "rest.txt"]);
    expect(repo.git("log", "--format=%s", "mailchute/task")).toBe("Two files\nfirst");
    expect(repo.git("status", "--porcelain")).toBe("");
  });

  it("resumes its session there after its check failed, and after everything was killed", async () => {
    const place = await placeOf(kind, [HALF, LONG_TOOL, REST]);
    const { api, pool, repo, worktree } = place;
    // Where nothing was done it says something else, so the base is not to blame.
    const check = "ls half.txt && { test -e again || { touch again; exit 1; }; }";
    drop(place, { verify: ["sh", "-c", check] });
    await pool.start();
    await waitFor(() => fs.existsSync(join(worktree, "pid")), {
      what: "the long tool",
      timeoutMs: SLOW_MS,
    });
    await pool.killAll();
    await pool.start();
    expect(await pool.result("task", SLOW_MS)).toMatchObject({ output: "Done.", attempts: 3 });
    expect(repo.git("show", "refs/mailchute/task/1:half.txt")).toBe("half");
    expect(filesOf(place)).toEqual(expect.arrayContaining(["again", "half.txt", "rest.txt"]));
    // Each later request has the words of the first one: the session went on.
    const turns = api.requests.filter((request) => request.kind === "turn");
    expect(turns.at(-1)?.messages.join()).toContain("go: task");
  });
});

it.each(KINDS)("%s commits behind walls, and writes nothing beside its worktree", async (kind) => {
  if (!hasDebianPackage("bubblewrap", "bwrap")) throw new Error("apt-get install bubblewrap");
  const tool =
    "git add -A && git commit -qm mine; echo out > ../../../repo/out || echo in > held.txt";
  const place = await outsideOfTmp(() =>
    placeOf(kind, [HALF, tool, REST], { sandbox: {}, permissions: { mode: "full" } }),
  );
  const { pool, repo } = place;
  repo.git("config", "user.name", "Ada");
  repo.git("config", "user.email", "ada@example.invalid");
  drop(place, { verify: ["grep", "-q", "rest", "rest.txt"] });
  await pool.start();
  expect(await pool.result("task", SLOW_MS)).toMatchObject({ output: "Done.", attempts: 1 });
  expect(filesOf(place)).toEqual([".gitignore", "README.md", "half.txt", "held.txt", "rest.txt"]);
  expect(repo.git("log", "--format=%s", "mailchute/task")).toBe("Two files\nmine\nfirst");
  expect(repo.git("status", "--porcelain")).toBe("");
});

/** The sandbox lets its tools write below /tmp, so the state tree must be elsewhere. */
async function outsideOfTmp<T>(make: () => Promise<T>): Promise<T> {
  const { TMPDIR: before } = process.env;
  process.env["TMPDIR"] = "/var/tmp";
  try {
    return await make();
  } finally {
    if (before === undefined) delete process.env["TMPDIR"];
    else process.env["TMPDIR"] = before;
  }
}

/** Whether this machine lets codex make its sandbox at all. */
function hasSandbox(): boolean {
  const args = ["sandbox", "-c", "sandbox_mode=workspace-write", "--", "true"];
  try {
    execFileSync(programPath("codex"), args, { stdio: "ignore" });
    return true;
  } catch {
    return false;
  }
}

it("a codex whose sandbox lets it commit nothing: its work is a commit on its branch, too", async ({
  skip,
}) => {
  if (!hasSandbox()) skip("codex can make no sandbox here");
  const commit = "git add -A && git commit -qm mine || echo refused > refused.txt";
  const place = await outsideOfTmp(() =>
    placeOf("codex", [`${HALF}; ${commit}`], { permissions: { mode: "edit" } }),
  );
  const { pool, repo } = place;
  repo.git("config", "user.name", "Ada");
  repo.git("config", "user.email", "ada@example.invalid");
  drop(place);
  await pool.start();
  expect(await pool.result("task", SLOW_MS)).toMatchObject({ output: "Done.", attempts: 1 });
  expect(filesOf(place)).toEqual([".gitignore", "README.md", "half.txt", "refused.txt"]);
  expect(repo.git("log", "--format=%an: %s", "mailchute/task")).toBe(
    "Ada: Two files\nA Person: first",
  );
});
