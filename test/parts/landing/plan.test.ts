/** The plan waits for the work of its nodes to land, and shows how far it is: a real pool, real programs, a real git. */
import fs from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { newPlace } from "../worktrees/place.ts";

const TARGET = "mailchute/integration";
/** Notes what has landed when it runs, then writes a file of its own name. */
const CODER = `
echo "$MAILCHUTE_TASK_ID $(git ls-tree --name-only ${TARGET} 2>/dev/null | tr '\\n' ' ')" >> "$MAILCHUTE_STATE/../seen"
echo x > "$MAILCHUTE_TASK_ID.txt"
echo '<result>{"status": "success"}</result>'
`;
/** A check that is red where the work of bad lands, alone or with other work, as long as the file \`red\` is there. */
const CHECK = `case $PWD in */.landing/*) test ! -e bad.txt || test ! -e "$MAILCHUTE_STATE/../red";; esac`;
const AGENT = {
  name: "coder",
  kind: "exec",
  program: "sh",
  args: ["-ec", CODER],
  phases: ["IMPLEMENT"],
  worktree: "auto",
  land: "merge",
  verify: ["sh", "-c", CHECK],
};
const PLAN = `
epics: [{ id: E, milestones: [{ id: M, tasks: [
  { id: good, title: first, agent: coder, cwd: ../repo },
  { id: bad, agent: coder, cwd: ../repo, dependencies: [good] } ] }] }]
nodes:
  - { id: after-good, agent: coder, cwd: ../repo, dependencies: [good] }
  - { id: after-bad, exec: [echo, done], dependencies: [bad] }
  - { id: after-bad-ended, exec: [echo, done], dependencies: [{ id: bad, required_status: terminal }] }
  - { id: after-all, exec: [echo, done], dependencies: [E] }
`;

function newPlan() {
  const place = newPlace(`agents: [${JSON.stringify(AGENT)}]\n`);
  const { pool } = place;
  fs.writeFileSync(
    join(pool.state, "roadmap.yaml"),
    PLAN.replaceAll("../repo", join(pool.dir, "repo")),
  );
  fs.writeFileSync(join(pool.dir, "red"), "");
  const drain = async (): Promise<number | null> =>
    (await (await pool.start(["--drain"])).ended).exitCode;
  const show = async (...args: string[]): Promise<string> => {
    const { stdout, stderr } = await pool.run(args);
    return (stdout + stderr).replace(/\s+/g, " ");
  };
  return { ...place, drain, show };
}

test("a node starts when the work that it depends on has landed, and so does a task", async () => {
  const { pool, repo, drain, show, ask } = newPlan();
  for (const on of ["good", "bad", "E"])
    pool.drop(`task-after-${on}`, { exec: ["true"], metadata: { dependencies: [on] } });
  expect(await drain()).toBe(1);
  const seen = fs.readFileSync(join(pool.dir, "seen"), "utf8");
  expect(seen).toMatch(/^good \n/);
  expect(seen).toMatch(/^bad .*good\.txt/m);
  expect(seen).toMatch(/^after-good .*good\.txt/m);
  await pool.result("task-after-good");
  await pool.result("after-bad-ended");
  const waiting = ["task-after-E.json", "task-after-bad.json"];
  expect(fs.readdirSync(pool.inbox).sort()).toEqual(waiting);
  const why = await show("roadmap", "next", "--explain");
  expect(why).toContain("after-bad waits for bad, which did not land: The work of bad");
  expect(why).toContain("after-all cannot start: 1 of 2 in E failed or did not land");
  expect(await show("status")).toContain("after-bad (waits for bad, which did not land");

  // Each view knows branch, base, target, how much it changes, and how far its landing is.
  const main = repo.git("rev-parse", "main");
  const { base = "" } = await pool.result("bad");
  // It builds on what has landed.
  expect(repo.git("ls-tree", "--name-only", base)).toContain("good.txt");
  const work = (id: string, more: object): object => ({
    task_id: id,
    branch: `mailchute/${id}`,
    base,
    target: TARGET,
    files: 1,
    insertions: 1,
    deletions: 0,
    ...more,
  });
  const nodes = (await ask("roadmap", "show")).json as { nodes: { id: string; work?: object }[] };
  const workOf = new Map(nodes.nodes.map((node) => [node.id, node.work]));
  const landed = work("good", { base: main, state: "landed", title: "first" });
  expect(workOf.get("good")).toMatchObject(landed);
  expect(workOf.get("bad")).toMatchObject(work("bad", { state: "failed" }));
  expect(workOf.get("after-bad-ended")).toBeUndefined();
  expect(await show("roadmap", "show")).toContain("first landed on mailchute/integration: 1 file,");
  const status = (await ask("status")).json as { work: object };
  expect(status.work).toMatchObject({ landed: 2, unlanded: [work("bad", { state: "failed" })] });
  expect(await show("status")).toContain("work 1 could not land, 2 landed");
  expect(await show("status")).toContain(`bad could not land 1 file, +1 -0 ${TARGET}`);
  const report = (await ask("report")).json as { work: object[] };
  expect(report.work).toEqual(expect.arrayContaining([expect.objectContaining(landed)]));
  const shown = (await ask("show", "bad")).json;
  expect(shown).toMatchObject({
    record: { branch: "mailchute/bad", base, target: TARGET, diffstat: { files: 1 } },
    landing: { id: "bad.land", state: "failed" },
  });

  // A person lands it: what waits for it goes on.
  fs.rmSync(join(pool.dir, "red"));
  expect((await pool.run(["land", "bad"])).code).toBe(0);
  expect(await drain()).toBe(0);
  for (const id of ["after-bad", "after-all", "task-after-bad", "task-after-E"])
    await pool.result(id);
  expect(pool.errors()).toEqual([]);

  // A program that reads the outbox takes all records away.
  for (const name of fs.readdirSync(pool.outbox)) fs.rmSync(join(pool.outbox, name));
  expect(await show("status")).toContain("work 3 landed");
  const later = (await ask("report")).json as { work: object[]; next: { do: string }[] };
  expect(later.work).toEqual(expect.arrayContaining([expect.objectContaining(landed)]));
  expect(later.next.map((step) => step.do).join()).not.toContain("review");
});

test("the work of a node that asks a person does not land before it is done", async () => {
  const script = `echo "run: $(ls | tr '\\n' ' ')" >> "$MAILCHUTE_STATE/../seen"
if [ -e half.txt ]; then echo rest > rest.txt; echo '<result>{"status": "success"}</result>'
else echo half > half.txt; echo '<result>{"status": "checkpoint", "checkpoint": {"question": "Blue?"}}</result>'; fi`;
  const agent = { ...AGENT, args: ["-ec", script], verify: undefined };
  const { pool, repo } = newPlace(`agents: [${JSON.stringify(agent)}]\n`);
  const node = { id: "a", agent: "coder", cwd: join(pool.dir, "repo") };
  fs.writeFileSync(join(pool.state, "roadmap.yaml"), `nodes: [${JSON.stringify(node)}]\n`);
  await (await pool.start(["--drain"])).ended;
  expect(await pool.result("a")).toMatchObject({ verdict: "checkpoint" });
  expect(pool.results()).toHaveLength(1);
  expect(repo.git("for-each-ref", "--format=%(refname)", `refs/heads/${TARGET}`)).toBe("");
  expect(repo.git("show", "refs/mailchute/a/1:half.txt")).toBe("half");
  expect((await pool.run(["answer", "a", "blue"])).code).toBe(0);
  await (await pool.start(["--drain"])).ended;
  await pool.result("a.land");
  expect(fs.readFileSync(join(pool.dir, "seen"), "utf8")).toBe(
    "run: README.md \nrun: README.md half.txt \n",
  );
  expect(repo.git("ls-tree", "--name-only", TARGET).split("\n")).toEqual([
    ".gitignore",
    "README.md",
    "half.txt",
    "rest.txt",
  ]);
});
