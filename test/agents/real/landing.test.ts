/** The real claude and codex, against the mock API: a conflict, and work that a person rejects, go back into their session. */
import fs from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import type { Step } from "../../../src/agents/mock-api/script.ts";
import type { SessionDocument } from "../../../src/agents/stream/session-file.ts";
import { newRepository } from "../../support/git-repository.ts";
import { readJson } from "../../support/pool.ts";
import { KINDS, type Kind, newAgentBench } from "./agent-bench.ts";

const SLOW_MS = 120_000;
const TARGET = "mailchute/integration";
const DONE: Step = { say: "Done." };
const LAST: Step = { ...DONE, times: 1000 };
const WRITE: Step = { run: "echo agent > same.txt" };
const MORE: Step = { run: "echo more >> same.txt" };
/** Both changes hold. */
const SOLVE: Step = {
  run: `git merge -q ${TARGET} || { printf 'person\\nagent\\n' > same.txt; git commit -qam both; }`,
};

/** @param theirs what a person has put into `same.txt` of the target in the meantime */
async function placeOf(kind: Kind, land: string, steps: readonly Step[], theirs?: string) {
  const bench = await newAgentBench(kind, steps, {
    agent: { worktree: "auto", land, base: "checkout" },
  });
  const { api, pool } = bench;
  const repo = newRepository(join(pool.dir, "repo"));
  repo.git("config", "user.name", "Ada");
  repo.git("config", "user.email", "ada@example.invalid");
  repo.git("checkout", "-q", "-b", TARGET);
  repo.commit(theirs === undefined ? { "other.txt": "x\n" } : { "same.txt": theirs }, "theirs");
  repo.git("checkout", "-q", "main");
  pool.drop("task", { agent: "coder", prompt: "go: task", title: "One file", cwd: "repo" });
  await pool.start();
  /** Both runs had one session, and the request with these words came after what the first one had said. */
  const expectOneSession = (words: string): void => {
    const runs = join(pool.state, "runs");
    const files = fs.readdirSync(runs, { recursive: true, encoding: "utf8" });
    const sessions = files
      .filter((name) => name.endsWith("session.json"))
      .map((name) => readJson<SessionDocument>(join(runs, name))?.session_id);
    expect(sessions).toEqual([expect.any(String), sessions[0]]);
    const request = api.requests.find(({ messages }) => messages.join("\n").includes(words));
    expect(request?.messages.join("\n")).toContain("assistant: Done.");
  };
  return { pool, repo, expectOneSession };
}

describe.each(KINDS)("%s", (kind) => {
  it("mends a conflict in the session that did the work, and it lands", async () => {
    const steps = [WRITE, DONE, SOLVE, LAST];
    const { pool, repo, expectOneSession } = await placeOf(kind, "merge", steps, "person\n");
    const { output } = await pool.result("task.land", SLOW_MS);
    expect(output).toMatchObject({ landing: "landed" });
    expect(repo.git("show", `${TARGET}:same.txt`)).toBe("person\nagent");
    expectOneSession("conflict in same.txt");
    expect(pool.errors()).toEqual([]);
  });

  it("hears there what a person says of work that is rejected", async () => {
    const { pool, repo, expectOneSession } = await placeOf(kind, "branch", [
      WRITE,
      DONE,
      MORE,
      LAST,
    ]);
    expect(await pool.result("task", SLOW_MS)).toMatchObject({ landing: "branch" });
    expect((await pool.run(["reject", "task", "go: say more"])).code).toBe(0);
    await pool.result("task.fix-1", SLOW_MS);
    expectOneSession("go: say more");
    expect((await pool.run(["land", "task"])).code).toBe(0);
    await pool.result("task.land", SLOW_MS);
    expect(repo.git("show", `${TARGET}:same.txt`)).toBe("agent\nmore");
  });
});
