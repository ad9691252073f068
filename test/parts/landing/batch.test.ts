/** Works that wait to land are checked together: a real pool, real programs, a real git. */
import fs from "node:fs";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { breakBuild, WHOLE_STACK } from "../../support/broken.ts";
import type { PoolOptions } from "../../support/pool.ts";
import { takeSome } from "../../support/take-some.ts";
import { untilAfter } from "../../support/time-limit.ts";
import { waitFor } from "../../support/wait-for.ts";
import { inWorktree, newPlace, type Place } from "../worktrees/place.ts";

takeSome();

const TARGET = "mailchute/integration";

/**
 * Where work lands the check notes each run with its commit and verdict, and hates files named bad. The first one waits until so many other
 * landings wait; number N waits until the file `stop-N` is gone.
 */
const CHECK = `
case $PWD in */.landing/*) ;; *) exit 0 ;; esac
echo x >> "$NOTES/begun"
number=$(($(wc -l < "$NOTES/begun")))
until test $number -gt 1 || test "$(ls "$INBOX" | grep -c '[.]land[.]json$')" -ge "$GATHER"; do sleep 0.05; done
until test ! -e "$NOTES/stop-$number"; do sleep 0.05; done
bad=$(ls | grep '^bad' | tr '\\n' ' ')
if test -n "$(git ls-files --unmerged)"; then said=dirty; elif test -z "$bad"; then said=green; else said=red; fi
echo "$(git rev-parse HEAD) $said" >> "$NOTES/checks"
test $said = green || { echo "no place for \${bad% }" >&2; exit 3; }
`;
/** So the work of t0 is checked alone, and all others wait then. It takes a slot for each task. */
const AFTER_FIRST =
  'until test $MAILCHUTE_TASK_ID = t0 || test -e "$NOTES/begun"; do sleep 0.05; done';

interface Night extends Place {
  notes: string;
  /** Drops a task that leaves a file. */
  drop: (id: string, more?: object, file?: string) => void;
  /** The checks of landings, as `COMMIT VERDICT`. */
  checks: () => string[];
  /** Each commit at which the target was. */
  moves: (target?: string) => string[];
  /** The files of tasks that have landed. */
  landed: (target?: string) => string[];
  /** Ids of the landings that wait. */
  waiting: () => string[];
}

/** @param gather so many landings wait before the first check ends */
function newNight(gather: number, config = "", more: PoolOptions = {}): Night {
  const place = newPlace(`${config}env_allow: [NOTES, GATHER, INBOX]\n`, more);
  const { pool, repo, env } = place;
  const notes = join(pool.dir, "notes");
  fs.mkdirSync(notes);
  Object.assign(env, { NOTES: notes, GATHER: String(gather), INBOX: pool.inbox });
  return {
    ...place,
    notes,
    drop: (id, more = {}, file = `${id}.txt`) =>
      pool.drop(
        id,
        inWorktree(`${gather < 20 ? AFTER_FIRST : "true"}; echo ${id} > ${file}`, {
          land: "merge",
          verify: ["sh", "-c", CHECK],
          sequence_number: Number(id.slice(1)),
          ...more,
        }),
      ),
    checks: () => {
      const path = join(notes, "checks");
      return fs.existsSync(path) ? fs.readFileSync(path, "utf8").trim().split("\n") : [];
    },
    moves: (target = TARGET) =>
      repo.git("reflog", "show", "--format=%H", `refs/heads/${target}`).split("\n").toReversed(),
    landed: (target = TARGET) =>
      repo
        .git("ls-tree", "--name-only", target)
        .split("\n")
        .filter((name) => name.endsWith(".txt")),
    waiting: () =>
      fs
        .readdirSync(pool.inbox)
        .filter((name) => name.endsWith(".land.json"))
        .map((name) => name.slice(0, -".json".length)),
  };
}

/** The tasks whose work was checked with that of this one, as its record says. */
async function matesOf({ pool }: Night, id: string): Promise<string[]> {
  const { verdict_reason: reason } = await pool.result(`${id}.land`);
  return /checked together with (.*)/.exec(String(reason))?.[1]?.split(", ") ?? [];
}

/** Each move of the target went to a commit whose check was green. */
function expectChecked({ checks, moves }: Night, target = TARGET): void {
  const green = new Set(
    checks()
      .filter((line) => line.endsWith(" green"))
      .map((line) => line.split(" ")[0]),
  );
  for (const commit of moves(target).slice(1)) expect(green, commit).toContain(commit);
}

const idsOf = (count: number): string[] => Array.from({ length: count }, (_, n) => `t${n}`);

test("thirty good works land with at most 8 checks, and each record names the commit that was checked", async () => {
  const night = newNight(29);
  const { pool, repo } = night;
  for (const id of idsOf(30)) night.drop(id);
  await (await pool.start(["--drain", "--workers", "3"])).ended;
  expect(pool.errors()).toEqual([]);
  for (const id of idsOf(30)) {
    const { output } = await pool.result(`${id}.land`);
    expect(output).toMatchObject({ landing: "landed", task_id: id });
    const { commit } = output as { commit: string };
    expect(night.checks()).toContain(`${commit} green`);
    expect(repo.git("show", `${commit}:${id}.txt`)).toBe(id);
  }
  const checks = night.checks();
  process.stderr.write(`30 good works: ${checks.length} checks\n`);
  expect(checks.length).toBeLessThanOrEqual(8);
  expect(night.moves()).toHaveLength(1 + checks.length);
  expectChecked(night);
  expect(repo.git("log", "--format=%s", TARGET).split("\n")).toHaveLength(31);
  expect(repo.git("worktree", "list").split("\n")).toHaveLength(1);
  expect(repo.git("for-each-ref", "--format=%(refname)", "refs/heads/mailchute")).toBe(
    `refs/heads/${TARGET}`,
  );
});

test("with two bad ones among thirty at most 16 checks find them, and only they wait, each for its own reason", async () => {
  const night = newNight(29);
  const { pool } = night;
  const bad = ["t6", "t21"];
  for (const id of idsOf(30)) night.drop(id, {}, bad.includes(id) ? `bad-${id}` : undefined);
  await (await pool.start(["--drain", "--workers", "3"])).ended;
  const checks = night.checks();
  process.stderr.write(`30 works, 2 of them bad: ${checks.length} checks\n`);
  expect(checks.length).toBeLessThanOrEqual(16);
  for (const id of bad) {
    const { error, kind } = await pool.error(`${id}.land`);
    expect(kind).toBe("landing");
    expect(error).toContain(`no place for bad-${id}`);
    expect(error).toContain(`The work of ${id} on mailchute/${id} was brought together with`);
  }
  expect(pool.errors()).toHaveLength(2);
  expect(night.landed()).toHaveLength(28);
  expectChecked(night);
});

test("work in conflict, and later work on its files, is left to its own landing; the others land together", async () => {
  const night = newNight(6);
  const { pool } = night;
  const old = { base: "checkout" };
  night.drop("t0", old);
  for (const id of ["t1", "t2", "t3"]) night.drop(id, old, "same.txt");
  for (const id of ["t4", "t5", "t6"]) night.drop(id, old);
  await (await pool.start(["--drain", "--workers", "7"])).ended;
  const failed = pool.errors();
  expect(failed).toHaveLength(2);
  for (const { error } of failed) expect(error).toContain("conflict in same.txt");
  expect(night.landed()).toHaveLength(5);
  expect(night.checks()).toHaveLength(2);
  expect(await matesOf(night, "t4")).toHaveLength(3);
  expectChecked(night);
});

test("work beside which nothing fits is checked as it is, not in what was tried on top of it", async () => {
  const night = newNight(2);
  const { pool, repo } = night;
  night.drop("t0");
  for (const id of ["t1", "t2"]) night.drop(id, { base: "checkout" }, "same.txt");
  await (await pool.start(["--drain", "--workers", "3"])).ended;
  const [failed, ...others] = pool.errors();
  expect(others).toEqual([]);
  expect(failed?.error).toContain("conflict in same.txt");
  const landed = failed?.task_id === "t1.land" ? "t2" : "t1";
  expect(repo.git("show", `${TARGET}:same.txt`)).toBe(landed);
  expect(night.checks()).toHaveLength(2);
  expectChecked(night);
});

test("work with another target, check or reviewer is not brought together with it", async () => {
  const reviewer = `agents: [{name: rev, kind: exec, program: sh, args: [-c, 'echo "<result>{\\"verdict\\": \\"pass\\"}</result>"']}]\n`;
  const night = newNight(7, reviewer);
  const { pool, repo } = night;
  repo.git("branch", "other");
  for (const id of ["t0", "t1", "t2"]) night.drop(id);
  for (const id of ["t3", "t4"]) night.drop(id, { target: "other" });
  night.drop("t5", { review_by: "rev" });
  night.drop("t6", { verify: ["sh", "-c", `: another\n${CHECK}`] });
  night.drop("t7", { setup: ["true"] });
  await (await pool.start(["--drain", "--workers", "8"])).ended;
  expect(pool.errors()).toEqual([]);
  const together: Record<string, string[]> = { t1: ["t2"], t2: ["t1"], t3: ["t4"], t4: ["t3"] };
  for (const id of idsOf(8)) expect(await matesOf(night, id), id).toEqual(together[id] ?? []);
  expectChecked(night);
  expectChecked(night, "other");
  expect(night.landed("other")).toHaveLength(2);
});

test("a bad work goes back to its agent without another check, and lands when it is mended", async () => {
  const night = newNight(
    3,
    `agents: [{name: coder, kind: exec, program: sh, args: ["-ec", 'case $MAILCHUTE_TASK_ID in *.fix-*) mv bad.txt good.txt;; *) ${AFTER_FIRST}; echo x > bad.txt;; esac'], worktree: auto}]\n`,
  );
  const { pool } = night;
  for (const id of ["t0", "t1", "t3"]) night.drop(id);
  night.drop("t2", { exec: undefined, agent: "coder", prompt: "write it" });
  await (await pool.start(["--drain", "--workers", "4"])).ended;
  expect(pool.errors()).toEqual([]);
  await pool.result("t2.fix-1");
  expect(night.landed()).toContain("good.txt");
  // The check of the three, and at most two to find out whose fault it is.
  const red = night.checks().filter((line) => line.endsWith(" red"));
  expect(new Set(red).size).toBe(red.length);
  expect(night.checks().length).toBeLessThanOrEqual(6);
  expectChecked(night);
});

test("work whose landing is cancelled while it is checked with others does not land", async () => {
  const night = newNight(2);
  const { pool, notes } = night;
  fs.writeFileSync(join(notes, "stop-2"), "");
  for (const id of idsOf(3)) night.drop(id);
  const { ended } = await pool.start(["--workers", "3"]);
  const begun = (): string => fs.readFileSync(join(notes, "begun"), "utf8");
  await pool.result("t0.land");
  await waitFor(() => begun() === "x\nx\n" && night.waiting().length === 1, {
    what: "the check of the other two",
  });
  const [cancelled = ""] = night.waiting();
  expect((await pool.run(["cancel", cancelled, "--wait"])).code).toBe(0);
  fs.rmSync(join(notes, "stop-2"));
  const other = cancelled === "t1.land" ? "t2.land" : "t1.land";
  await pool.result(other);
  await pool.run(["stop"]);
  await ended;
  expect(night.checks()).toHaveLength(3);
  expect(night.landed()).not.toContain(cancelled.replace("land", "txt"));
  expectChecked(night);
});

test("with landing.batch 1 each work is checked alone", async () => {
  const night = newNight(3, "landing: {batch: 1}\n");
  for (const id of idsOf(4)) night.drop(id);
  await (await night.pool.start(["--drain", "--workers", "4"])).ended;
  for (const id of idsOf(4)) expect(await matesOf(night, id)).toEqual([]);
  expect(night.checks()).toHaveLength(4);
});

test("after the time of --until work lands that is checked then; its records follow at the next start", async () => {
  const night = newNight(3, "until_grace_ms: 0\n");
  const { pool, notes } = night;
  fs.writeFileSync(join(notes, "stop-2"), "");
  for (const id of idsOf(4)) night.drop(id);
  const run = await pool.start(["--workers", "4", "--until", untilAfter(6000)]);
  await waitFor(() => run.stderr().includes("the time of --until has come"), {
    timeoutMs: 60_000,
    what: "its time",
  });
  expect(fs.readFileSync(join(notes, "begun"), "utf8"), "both checks have begun").toBe("x\nx\n");
  fs.rmSync(join(notes, "stop-2"));
  expect(await run.ended).toEqual({ exitCode: 0, signal: null });
  const moves = night.moves();
  await (await pool.start(["--drain", "--workers", "4"])).ended;
  for (const id of idsOf(4)) await pool.result(`${id}.land`);
  expect(night.landed()).toHaveLength(4);
  expect(new Set(night.moves()).size).toBe(night.moves().length);
  expect(night.moves().slice(0, moves.length)).toEqual(moves);
  expectChecked(night);
});

test("two trees bring their works onto one target, and each work lands once", async () => {
  const night = newNight(0);
  const other = newPlace("env_allow: [NOTES, GATHER, INBOX]\n");
  Object.assign(other.env, night.env);
  const ids = idsOf(8);
  for (const id of ids) night.drop(id, { exec: ["sh", "-c", `echo ${id} > ${id}.txt`] });
  for (const id of ids) {
    const file = `other-${id}.txt`;
    const task = inWorktree(`echo ${id} > ${file}`, { land: "merge", verify: ["sh", "-c", CHECK] });
    other.pool.drop(`other-${id}`, { ...task, cwd: night.repo.dir });
  }
  const runs = [night, other].map(({ pool }) => pool.start(["--drain", "--workers", "4"]));
  for (const run of runs) await (await run).ended;
  expect([...night.pool.errors(), ...other.pool.errors()]).toEqual([]);
  expect(night.landed()).toHaveLength(16);
  expect(night.repo.git("log", "--format=%s", TARGET).split("\n")).toHaveLength(17);
  expectChecked(night);
});

test("a file of a person in a checked-out target holds up only the work that would replace it", async () => {
  const night = newNight(3);
  const { pool, repo } = night;
  repo.git("checkout", "-q", "-b", "release");
  fs.writeFileSync(join(repo.dir, "t2.txt"), "of a person\n");
  for (const id of idsOf(4)) night.drop(id, { target: "release", land_into_checkout: true });
  const { ended } = await pool.start(["--workers", "4"]);
  for (const id of ["t0", "t1", "t3"]) await pool.result(`${id}.land`);
  await waitFor(
    async () =>
      (await pool.run(["show", "t2.land"])).stdout.includes("where t2.txt would be replaced"),
    { what: "the reason of t2" },
  );
  expect(fs.readFileSync(join(repo.dir, "t2.txt"), "utf8")).toBe("of a person\n");
  await pool.run(["stop"]);
  await ended;
  expect(await matesOf(night, "t1")).toEqual(["t3"]);
  expect(repo.git("status", "--porcelain", "--untracked-files=no")).toBe("");
});

test("work that changes protected files waits alone, and only one of a stack adds new tests", async () => {
  const night = newNight(5);
  const { pool, repo } = night;
  fs.mkdirSync(join(repo.dir, "tests"));
  repo.commit({ "tests/one": "1\n" }, "a test");
  const guards = { protect: ["tests/**"], verify_from: "target" };
  for (const id of ["t0", "t3", "t4"]) night.drop(id, guards);
  for (const id of ["t1", "t2"]) night.drop(id, guards, `tests/${id}`);
  night.drop("t5", guards, "tests/one");
  await (await pool.start(["--drain", "--workers", "6"])).ended;
  expect(pool.errors().map(({ error }) => error)).toEqual([
    expect.stringContaining("the work of t5 changes protected files"),
  ]);
  expect(repo.git("ls-tree", "-r", "--name-only", TARGET, "tests/")).toBe(
    "tests/one\ntests/t1\ntests/t2",
  );
  expect(await matesOf(night, "t1")).not.toContain("t2");
  expect(await matesOf(night, "t2")).not.toContain("t1");
  const [mate = ""] = await matesOf(night, "t3");
  expect([...(await matesOf(night, mate)), mate]).toContain("t3");
  // The proof is one of the whole change, and names the others.
  const proof = JSON.parse(repo.git("cat-file", "blob", "refs/mailchute-proof/t3"));
  expect(proof.predicate.together_with).toEqual(await matesOf(night, "t3"));
  expectChecked(night);
});

test("control: a stack that lands whole, although only its lower part is green: noticed", async () => {
  const night = newNight(2, "", { launcher: breakBuild(onTestFinished, WHOLE_STACK) });
  const { pool } = night;
  for (const id of ["t0", "t1"]) night.drop(id);
  const later = `until test -e "${pool.inbox}/t1.land.json"; do sleep 0.05; done; echo x > bad`;
  night.drop("t2", { exec: ["sh", "-c", later] });
  await (await pool.start(["--drain", "--workers", "3"])).ended;
  expect(() => expectChecked(night)).toThrow();
});
