/** A person reviews, lands and rejects work; an agent mends what does not fit. */
import fs from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { takeSome } from "../../support/take-some.ts";
import { inWorktree, newPlace } from "../worktrees/place.ts";

takeSome();

const TARGET = "mailchute/integration";
/** An agent that reads its task: a first run writes `same.txt`, a mending one keeps its own line beside the other. */
const AGENT = `
commit() { git add -A; git -c user.name=x -c user.email=x@x commit -qm "$MAILCHUTE_TASK_ID"; }
if grep -q worktree_of "$MAILCHUTE_TASK_FILE"; then
  grep -o '"prompt":"[^"]*' "$MAILCHUTE_TASK_FILE"
  [ "$CANNOT_MEND" = 1 ] && exit 0
  git rebase -q ${TARGET} >/dev/null 2>&1 || { { git show "${TARGET}:same.txt"; echo mended; } > same.txt; git add -A; GIT_EDITOR=true git -c user.name=x -c user.email=x@x rebase --continue >/dev/null; }
  git diff --quiet HEAD && [ "$(git rev-parse HEAD)" != "$(git rev-parse ${TARGET})" ] || { echo mended >> same.txt; commit; }
else echo "$MAILCHUTE_TASK_ID" > same.txt; commit; fi
`;

function newCoder(more = "land: merge, base: checkout"): ReturnType<typeof newPlace> {
  const place = newPlace(
    `env_allow: [CANNOT_MEND]\nagents: [{name: coder, kind: exec, program: sh, args: ["-e", agent.sh], worktree: auto, ${more}}]\n`,
  );
  fs.writeFileSync(join(place.pool.dir, "agent.sh"), AGENT);
  place.repo.commit({ "agent.sh": AGENT }, "agent");
  return place;
}
const task = (more: object = {}) => ({
  agent: "coder",
  prompt: "write it",
  cwd: "repo",
  max_attempts: 1,
  ...more,
});
const after = (id: string) => ({ metadata: { dependencies: [id] } });

test("a conflict goes back to the agent once, in the same worktree, and lands then; who waits for the task waits for that", async () => {
  const { pool, repo } = newCoder();
  repo.git("branch", TARGET);
  pool.drop("a", task());
  pool.drop("b", task());
  for (const id of ["a", "b"])
    pool.drop(`after-${id}`, {
      exec: ["git", "-C", "repo", "show", `${TARGET}:same.txt`],
      ...after(id),
    });
  await (await pool.start(["--drain"])).ended;
  expect(pool.errors()).toEqual([]);
  const fixed = pool.results().find(({ task_id }) => task_id.endsWith(".fix-1"));
  const loser = fixed?.task_id.replace(".fix-1", "") ?? "";
  const winner = loser === "a" ? "b" : "a";
  expect(fixed?.output).toContain(`conflict in same.txt`);
  expect(repo.git("show", `${TARGET}:same.txt`)).toBe(`${winner}\nmended`);
  expect((await pool.result(`after-${loser}`)).output).toBe(`${winner}\nmended\n`);
  expect((await pool.result(`after-${winner}`)).output).toContain(`${winner}\n`);
  expect(repo.git("worktree", "list").split("\n")).toHaveLength(1);
});

test("what the agent cannot mend stays with a person, and lands after that one has mended it", async () => {
  const { pool, repo, worktree } = newCoder();
  pool.drop("a", task());
  await (await pool.start(["--drain"])).ended;
  pool.drop("b", task({ env: { CANNOT_MEND: "1" } }));
  await (await pool.start(["--drain"])).ended;
  const failed = await pool.error("b.land");
  expect(failed.error).toContain("conflict in same.txt");
  expect(failed.kind).toBe("landing");
  const waited = await pool.run(["wait", "b", "--timeout", "5s"]);
  expect(waited.code).toBe(1);
  const tree = worktree("b");
  expect(() => repo.git("-C", tree, "rebase", "-q", TARGET)).toThrow();
  fs.writeFileSync(join(tree, "same.txt"), "a person\n");
  repo.git("-C", tree, "add", ".");
  repo.git("-C", tree, "-c", "core.editor=true", "rebase", "--continue");
  expect((await pool.run(["land", "b"])).stdout).toBe("b.land\n");
  await (await pool.start(["--drain"])).ended;
  await pool.result("b.land");
  expect(repo.git("show", `${TARGET}:same.txt`)).toBe("a person");
  expect(repo.git("log", "--format=%s", `${TARGET}~2..${TARGET}`)).toBe("b\na");
});

test("a branch stays until a person has seen it: review shows it, reject gives it back, land lands it", async () => {
  const { pool, repo, ask } = newCoder("land: branch");
  pool.drop("a", task({ verify: ["sh", "-c", "echo all is well"] }));
  await (await pool.start(["--drain"])).ended;
  expect((await pool.result("a")).landing).toBe("branch");
  const { json: first } = await ask("review", "a");
  expect(first).toMatchObject({
    branch: "mailchute/a",
    target: TARGET,
    files: [{ path: "same.txt", insertions: 1, deletions: 0 }],
    commits: [expect.stringContaining("a")],
    landing: { state: "branch" },
    verify: expect.stringContaining("all is well"),
  });
  const { stdout } = await pool.run(["review", "a"]);
  expect(stdout).toContain("+1 -0  same.txt");
  repo.git("branch", TARGET, "main");
  const rejected = await pool.run(["reject", "a", "say", "more"]);
  expect(rejected).toMatchObject({ code: 0, stdout: "a.fix-1\n" });
  expect((await pool.run(["land", "a"])).code).toBe(4);
  await (await pool.start(["--drain"])).ended;
  expect((await pool.result("a.fix-1")).output).toContain('"prompt":"say more');
  expect((await pool.run(["land", "a"])).code).toBe(0);
  await (await pool.start(["--drain"])).ended;
  expect((await pool.result("a.land")).output).toMatchObject({ landing: "landed" });
  expect(repo.git("show", `${TARGET}:same.txt`)).toBe("a");
  const { json: last } = await ask("review", "a");
  expect(last).toMatchObject({ landing: { state: "landed" } });
  for (const more of [[], ["--wait"]]) {
    const again = await pool.run(["land", "a", ...more]);
    expect(again).toMatchObject({ code: 0, stdout: `a has landed on ${TARGET} already\n` });
  }
  expect(fs.readdirSync(pool.inbox)).toEqual([]);
  expect((await pool.run(["land", "none"])).code).toBe(3);
});

test("a landing that was not submitted when everything was killed is submitted by the next supervisor, once", async () => {
  const { pool, repo } = newPlace();
  pool.drop("a", inWorktree("echo a > a.txt; commit", { land: "merge" }));
  const running = await pool.start();
  await pool.result("a");
  await pool.killAll();
  await running.ended;
  // As if it had died before: nothing of the landing is there.
  for (const dir of [
    pool.inbox,
    pool.processing,
    pool.outbox,
    pool.failed,
    join(pool.mailbox, ".once"),
  ])
    for (const name of fs.existsSync(dir) ? fs.readdirSync(dir) : [])
      if (name.startsWith("a.land")) fs.rmSync(join(dir, name));
  fs.rmSync(join(pool.state, "landings", "a.sent.json"), { force: true });
  // Whoever reads the outbox has taken the record of the task, too.
  fs.rmSync(join(pool.outbox, "a_result.json"));
  for (let round = 0; round < 2; round++) await (await pool.start(["--drain"])).ended;
  await pool.result("a.land");
  expect(repo.git("log", "--format=%s", TARGET)).toBe("work\nfirst");
  expect(repo.git("show", `${TARGET}:a.txt`)).toBe("a");
});
