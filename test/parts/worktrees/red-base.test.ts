/** Whose fault is a red check? It is tried on the base of the work, too: a real pool, real programs, a real git. */
import fs from "node:fs";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { breakBuild } from "../../support/broken.ts";
import type { Pool } from "../../support/pool.ts";
import { takeSome } from "../../support/take-some.ts";
import { waitFor } from "../../support/wait-for.ts";
import { inWorktree, newPlace, type Place } from "./place.ts";

takeSome();

/** Says what differs from run to run, and is red until `mended` is there. */
const CHECK = `echo checked >> "$OUT/checks"
echo "at $(date +%H:%M:%S) in $(pwd), pid $$, took 0.$$ s, commit $(git rev-parse HEAD)"
test -e mended || { echo 'FAIL it is broken'; exit 3; }
`;

interface Case {
  place: Place;
  pool: Pool;
  /** Lines of a file that the programs write. */
  lines: (name: "runs" | "checks") => string[];
  drop: (id: string, script?: string, more?: object) => void;
}

/** One slot, so that each run begins when the one before has ended. */
const ONE = ["--workers", "1"];

function newCase(
  check = CHECK,
  { config = "", ...more }: { config?: string; launcher?: string } = {},
): Case {
  const place = newPlace(config, more);
  const { pool, repo } = place;
  const out = join(pool.dir, "out");
  fs.mkdirSync(out);
  repo.commit({ "check.sh": check });
  return {
    place,
    pool,
    lines: (name) => {
      const path = join(out, name);
      return fs.existsSync(path) ? fs.readFileSync(path, "utf8").trim().split("\n") : [];
    },
    drop: (id, script = "", more = {}) =>
      pool.drop(
        id,
        inWorktree(`echo ${id} >> "$OUT/runs"; echo ${id} > ${id}.txt; ${script}`, {
          verify: ["sh", "check.sh"],
          max_attempts: 2,
          env: { OUT: out },
          ...more,
        }),
      ),
  };
}

function held(pool: Pool): string[] {
  return fs
    .readdirSync(pool.processing)
    .filter((name) => name.includes("~hold-base"))
    .map((name) => name.slice(0, name.indexOf("@")))
    .sort();
}

async function allHeld(pool: Pool, ...ids: string[]): Promise<void> {
  await waitFor(() => held(pool).join() === ids.join(), { what: `${ids.join()} to wait` });
}

function questions(pool: Pool): string[] {
  const dir = join(pool.state, "questions", "open");
  return fs.existsSync(dir) ? fs.readdirSync(dir).filter((name) => name.endsWith(".md")) : [];
}

const kinds = (pool: Pool): unknown[] => pool.alerts().map(({ alert }) => alert);

/** Waits until each of the tasks waits for the base, or has ended. @returns how many runs began */
async function runsUntilHeld({ pool, lines, drop }: Case): Promise<string[]> {
  const ids = ["a", "b", "c"];
  for (const id of ids) drop(id);
  await pool.start(ONE);
  await waitFor(() => held(pool).length + pool.settledCount() === ids.length, {
    what: "the tasks",
  });
  return lines("runs");
}

test("tasks whose base is red in the same way wait without a run, for one question, until it is green", async () => {
  const one = newCase();
  const { place, pool, lines } = one;
  expect(await runsUntilHeld(one)).toEqual(["a"]);
  // After the run, and twice on the base.
  expect(lines("checks")).toHaveLength(3);
  const [question = "", ...more] = questions(pool);
  expect([question.slice(0, 5), more]).toEqual(["base.", []]);
  await waitFor(() => kinds(pool).includes("base_red"), { what: "the alert" });
  expect(kinds(pool)).toEqual(["base_red"]);
  const why = 'The base is red: verify: "sh" ended with exit code 3, at ';
  // One of them may just look whether its base has moved.
  await waitFor(async () => (await pool.run(["why", "b"])).stdout.includes(why), { what: why });
  place.repo.commit({ mended: "" });
  const base = place.repo.git("rev-parse", "HEAD");
  for (const id of ["a", "b", "c"])
    expect(await pool.result(id)).toMatchObject({ attempts: 1, base });
  expect(lines("runs").sort()).toEqual(["a", "a", "b", "c"]);
  expect(questions(pool)).toEqual([]);
  for (const id of ["a", "b", "c"])
    expect(place.repo.git("diff", "--name-only", "main", `mailchute/${id}`)).toBe(`${id}.txt`);
  // Of the checkouts of the base nothing is left.
  const left = fs.readdirSync(join(pool.state, "worktrees", ".base"));
  expect(left.filter((name) => name !== ".tmp")).toEqual([]);
  expect(place.repo.git("worktree", "list")).not.toContain(".base");
});

test("a build that compares all that the check prints pays for each run, and is found out", async () => {
  const launcher = breakBuild(onTestFinished, {
    file: "dist/worker/base-check.cjs",
    from: "of NOISE)",
    to: "of [])",
  });
  const runs = await runsUntilHeld(newCase(CHECK, { launcher }));
  expect(runs.sort()).toEqual(["a", "a", "b", "b", "c", "c"]);
});

test("the work of a run is kept while it waits, and gets what mended the base even if both have commits", async () => {
  const { place, pool, drop } = newCase();
  drop("a", "commit || true; echo more > more.txt");
  await pool.start(ONE);
  await allHeld(pool, "a");
  place.repo.commit({ mended: "" });
  await pool.result("a");
  const changed = place.repo.git("diff", "--name-only", "main", "mailchute/a");
  expect(changed.split("\n")).toEqual(["a.txt", "more.txt"]);
});

test("when they are in conflict, the agent brings them together, and a red check counts as an attempt", async () => {
  const { place, pool, lines, drop } = newCase();
  drop("a", "echo mine > README.md");
  await pool.start(ONE);
  await allHeld(pool, "a");
  place.repo.commit({ mended: "", "README.md": "a person's" });
  expect(await pool.error("a")).toMatchObject({ kind: "verify", attempts: 2 });
  expect(lines("runs")).toEqual(["a", "a", "a"]);
});

test("a base that becomes red in another way is another question, and its answer lets the runs go on from there", async () => {
  const { place, pool, lines, drop } = newCase();
  for (const id of ["a", "b"]) drop(id);
  await pool.start(ONE);
  await allHeld(pool, "a", "b");
  const [before = ""] = questions(pool);
  place.repo.commit({ "check.sh": "echo 'FAIL it is broken otherwise'; exit 4\n" });
  await waitFor(() => !questions(pool).includes(before) && questions(pool).length === 1, {
    what: "the other question",
  });
  await allHeld(pool, "a", "b");
  expect(lines("runs")).toEqual(["a"]);
  const [after = ""] = questions(pool);
  await pool.run(["answer", after.replace(".md", ""), "yes"]);
  for (const id of ["a", "b"])
    expect(await pool.error(id)).toMatchObject({ kind: "verify", attempts: 2, exit_code: 4 });
  expect(lines("runs").sort()).toEqual(["a", "a", "a", "b", "b"]);
});

test("a node of the plan waits, too, and is checked again without a run when the base is green", async () => {
  const script = `echo n >> ../out/runs; echo '<result>{"status": "success"}</result>'`;
  const agent = {
    name: "coder",
    kind: "exec",
    program: "sh",
    args: ["-c", script.replace("..", "$MAILCHUTE_STATE/..")],
    phases: ["IMPLEMENT"],
    worktree: "auto",
    verify: ["sh", "check.sh"],
  };
  const { place, pool, lines } = newCase("test -e mended\n", {
    config: `agents: [${JSON.stringify(agent)}]\n`,
  });
  const node = { id: "node", agent: "coder", title: "Do it", cwd: join(pool.dir, "repo") };
  fs.writeFileSync(join(pool.state, "roadmap.yaml"), `${JSON.stringify({ nodes: [node] })}\n`);
  await pool.start(ONE);
  await allHeld(pool, "node");
  place.repo.commit({ mended: "" });
  expect(await pool.result("node")).toMatchObject({ attempts: 1 });
  expect(lines("runs")).toEqual(["n"]);
});

test("an answer of a person lets the runs go on as they are, and nothing is asked again", async () => {
  const { pool, lines, drop } = newCase();
  const keep = `cat "\${MAILCHUTE_LAST_CHECK:-/dev/null}" >> "$OUT/told"`;
  for (const id of ["a", "b"]) drop(id, keep);
  await pool.start(ONE);
  await allHeld(pool, "a", "b");
  const [question = ""] = questions(pool);
  await pool.run(["answer", question.replace(".md", ""), "go", "on"]);
  for (const id of ["a", "b"])
    expect(await pool.error(id)).toMatchObject({ kind: "verify", attempts: 2 });
  expect(lines("runs").filter((id) => id === "a")).toHaveLength(3);
  expect(lines("runs").filter((id) => id === "b")).toHaveLength(2);
  expect(questions(pool)).toEqual([]);
  const told = fs.readFileSync(join(pool.dir, "out", "told"), "utf8");
  expect(told).toContain(`Question: ${question.replace(".md", "")}`);
  expect(told).toContain("FAIL it is broken");
});

const SAYS_COUNT = `echo checked >> "$OUT/checks"; echo "$(ls *.txt 2>/dev/null | wc -l) of 3 are wrong"; exit 1\n`;

test.each([
  ["says something else on the base", SAYS_COUNT, {}, ["a", "a"], 4],
  ["is green on the base", "test ! -e a.txt\n", {}, ["a", "a"], undefined],
  ["is of expected files", CHECK, { verify: undefined, expect_files: ["b"] }, ["a", "a"], 0],
  ["is of a task without a worktree", CHECK, { worktree: "none" }, ["a", "a"], 2],
])(
  "a red check that %s is the run's own, and uses up an attempt",
  async (_what, check, more, runs, checks) => {
    const { pool, lines, drop } = newCase(check);
    drop("a", "", more);
    await pool.start(ONE);
    expect(await pool.error("a")).toMatchObject({ kind: "verify", attempts: 2 });
    expect(lines("runs")).toEqual(runs);
    if (checks !== undefined) expect(lines("checks")).toHaveLength(checks);
    expect(questions(pool)).toEqual([]);
  },
);

test("a check that is red and green by turns on the base is said to be flaky, once, and in the record", async () => {
  const { pool, lines, drop } = newCase(
    `n=$(cat "$OUT/n" 2>/dev/null || echo 0); n=$((n + 1)); echo $n > "$OUT/n"; test -e .git -a $n = 3\n`,
  );
  drop("a");
  await pool.start(ONE);
  const record = await pool.error("a");
  expect(record.error).toContain("the check is flaky: it was red and green by turns at ");
  expect(kinds(pool).filter((kind) => kind === "flaky_check")).toHaveLength(1);
  expect(lines("runs")).toEqual(["a", "a"]);
});

test("a check that is red after a run that changed nothing, and green on the base, is flaky, too", async () => {
  const { pool, drop } = newCase(
    `n=$(cat "$OUT/n" 2>/dev/null || echo 0); n=$((n + 1)); echo $n > "$OUT/n"; test $n = 2\n`,
  );
  drop("a", "rm a.txt");
  await pool.start(ONE);
  expect((await pool.error("a")).error).toContain("the check is flaky");
  expect(kinds(pool).filter((kind) => kind === "flaky_check")).toHaveLength(1);
});

test("a drain ends with 1 when its last tasks wait for their base, and says how to go on", async () => {
  const { pool, drop } = newCase();
  for (const id of ["a", "b"]) drop(id);
  const { code, stdout } = await pool.run(["run", "--drain", ...ONE]);
  expect(code).toBe(1);
  expect(stdout).toContain("The base is red: ");
  const [question = ""] = questions(pool);
  expect(stdout).toContain(`mailchute answer ${question.replace(".md", "")} TEXT`);
  expect(held(pool)).toEqual(["a", "b"]);
});

/** One task mends the base when the others wait for it. @returns the exit code of the drain */
async function drainAndMend(): Promise<number | null> {
  const { pool, drop } = newCase();
  for (const id of ["a", "b"]) drop(id);
  const script = `until [ "$(ls ${pool.processing} | grep -c '~hold-base')" = 2 ]; do sleep 0.02; done
    touch mended && git add mended && git -c user.name=x -c user.email=x@x commit -qm mended`;
  pool.drop("mend", { exec: ["sh", "-ec", script], cwd: "repo" });
  return (await pool.run(["run", "--drain", "--workers", "2"])).code;
}

test("a drain whose last task mends the base lets the others try again, and ends with 0", async () => {
  expect(await drainAndMend()).toBe(0);
});
