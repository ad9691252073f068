/** A coding agent that asks in prose and stops: a person gets the question when the run has changed nothing. Stand-ins, a real pool. */
import fs from "node:fs";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { breakBuild } from "../../support/broken.ts";
import { newRepository } from "../../support/git-repository.ts";
import type { Pool } from "../../support/pool.ts";
import { takeSome } from "../../support/take-some.ts";
import { waitFor } from "../../support/wait-for.ts";
import { type Bench, type Kind, newBench, type Step } from "./bench.ts";

takeSome();

const KINDS: readonly Kind[] = ["claude", "codex", "acp"];
const ASKS = "There are two ways.\n\nWhich colour shall it **have?**";
const PAINTS = [{ run: "echo blue > colour.txt" }, { say: "Done." }];
const IS_PAINTED = ["test", "-e", "colour.txt"];

interface Case {
  kind?: Kind;
  first?: readonly Step[];
  task?: object;
  launcher?: string;
  /** Which repository it works in; default: one of its own. */
  place?: "none" | "around the state tree";
}

/** One task in a repository, whose agent ends its first turn so. */
async function begin({ kind = "claude", first, task, launcher, place }: Case): Promise<Bench> {
  const turns = [first ?? [{ say: ASKS }], PAINTS, PAINTS];
  const more = launcher === undefined ? {} : { place: { launcher } };
  const bench = newBench([{ name: "coder", kind, turns }], more);
  const { pool } = bench;
  fs.mkdirSync(join(pool.dir, "repo"));
  if (place === undefined) newRepository(join(pool.dir, "repo"));
  if (place === "around the state tree") {
    fs.writeFileSync(join(pool.dir, "repo", "there"), "");
    fs.mkdirSync(join(pool.dir, ".git", "info"), { recursive: true });
    fs.writeFileSync(join(pool.dir, ".git", "info", "exclude"), "fakes/\nuser/\n");
    newRepository(pool.dir);
  }
  pool.drop("task", { agent: "coder", prompt: "Paint it", cwd: "repo", ...task });
  await pool.start();
  return bench;
}

const isAsked = (pool: Pool): boolean =>
  fs.existsSync(join(pool.state, "questions", "open", "task.asks.1.md"));
const isHeld = (pool: Pool): boolean =>
  fs.readdirSync(pool.processing).some((name) => name.includes("~hold-task-asks-1"));

describe.each(KINDS)("%s", (kind) => {
  it.each([
    ["without a check, in the checkout of a person", { task: {} }],
    [
      "with a red check, in a worktree of its own",
      { task: { verify: IS_PAINTED, worktree: "auto" } },
    ],
    ["in the repository that has the state tree", { place: "around the state tree", task: {} }],
  ] as const)("asks a person %s, and goes on with the answer", async (_what, one) => {
    const bench = await begin({ kind, ...one });
    const { pool } = bench;
    await waitFor(() => isAsked(pool) && isHeld(pool), { what: "the question" });
    const saysWhy = async () => (await pool.run(["why", "task"])).stdout;
    await waitFor(async () => (await saysWhy()).includes("Which colour shall it **have?**"), {
      what: "the reason",
    });
    await waitFor(() => pool.alerts().some(({ alert }) => alert === "question"), {
      what: "the alert",
    });
    expect(bench.messages("coder")).toHaveLength(1);
    await pool.run(["answer", "task.asks.1", "blue", "as", "the", "sea"]);
    expect(await pool.result("task")).toMatchObject({ attempts: 1, output: "Done." });
    const [first, second] = bench.resumed("coder");
    expect([first, typeof second]).toEqual([undefined, "string"]);
    const [, told = ""] = bench.messages("coder");
    expect(told).toContain("Which colour shall it **have?**\n\nThere are two ways.");
    expect(told).toContain("The answer:\n\nblue as the sea\n");
    expect(told).not.toContain("Paint it");
    expect(told.includes("The last check")).toBe("verify" in one.task);
    expect(bench.session("task")).toBeUndefined();
    expect(fs.readdirSync(join(pool.state, "sessions")).join()).not.toContain("check");
  });
});

/** @returns what the record of the task says, when nothing was asked */
async function endsUnasked(one: Case): Promise<unknown> {
  const { pool } = await begin(one);
  await waitFor(() => isAsked(pool) || pool.settledCount() === 1, { what: "the end of the task" });
  if (isAsked(pool)) throw new Error("it has asked");
  return (await pool.result("task")).output;
}

const CHANGES = [{ run: "echo x >> README.md" }, { say: "Shall I go on?" }];

it.each<[string, Case, string]>([
  ["has changed a file", { first: CHANGES }, "Shall I go on?"],
  [
    "has made a commit",
    {
      first: [
        { run: "git -c user.name=x -c user.email=x@x commit -qm x --allow-empty" },
        { say: "Shall I push it?" },
      ],
    },
    "Shall I push it?",
  ],
  ["ends in no question", { first: [{ say: "Why? Because." }] }, "Why? Because."],
  ["has a green check", { task: { verify: ["true"] } }, ASKS],
  ["has no repository", { place: "none" }, ASKS],
])("a run that %s asks nobody: the checks decide", async (_what, one, output) => {
  expect(await endsUnasked(one)).toBe(output);
});

it("a build that does not look whether the run has changed something asks, and is found out", async () => {
  const launcher = breakBuild(onTestFinished, {
    file: "dist/worker/entry.cjs",
    from: "=== this.before ? this.ask",
    to: "!== undefined ? this.ask",
  });
  await expect(endsUnasked({ first: CHANGES, launcher })).rejects.toThrow("it has asked");
});

it("no run begins while the question is open, also after a restart; a second question is another one", async () => {
  const bench = newBench([
    { name: "coder", kind: "claude", turns: [[{ say: "Red?" }], [{ say: "Blue?" }], PAINTS] },
  ]);
  const { pool } = bench;
  newRepository(join(pool.dir, "repo"));
  pool.drop("task", { agent: "coder", prompt: "Paint it", cwd: "repo" });
  await pool.start();
  await waitFor(() => isHeld(pool), { what: "the question" });
  await pool.stop();
  await pool.start();
  const held = () => pool.events().filter(({ event }) => event === "held").length;
  const before = held();
  await waitFor(() => held() > before && isHeld(pool), { what: "the trial of the new supervisor" });
  expect(bench.starts("coder")).toHaveLength(1);
  await pool.run(["answer", "task.asks.1", "no"]);
  await waitFor(() => fs.existsSync(join(pool.state, "questions", "open", "task.asks.2.md")), {
    what: "the second question",
  });
  await pool.run(["answer", "task.asks.2", "yes"]);
  expect(await pool.result("task")).toMatchObject({ attempts: 1, output: "Done." });
  expect(bench.messages("coder").at(-1)).toContain("Blue?");
});
