/** Work lands when another agent has passed it: a real pool, real programs, a real git. */
import fs from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { takeSome } from "../../support/take-some.ts";
import { waitFor } from "../../support/wait-for.ts";
import { newPlace, type Place } from "../worktrees/place.ts";

takeSome();

const CLAUDE = fileURLToPath(new URL("../../fixtures/programs/fake-claude.mjs", import.meta.url));
const TARGET = "mailchute/integration";
const COMMIT = `commit() { git add -A; git -c user.name=x -c user.email=x@x commit -qm "$MAILCHUTE_TASK_ID"; }`;
/** Writes `first`, and when it is told what is wrong, that. */
const AUTHOR = `
${COMMIT}
if grep -q worktree_of "$MAILCHUTE_TASK_FILE"; then grep -o 'say [a-z]*' "$MAILCHUTE_TASK_FILE" > a.txt; pwd > "$SEEN/mended-in"
else echo first > a.txt; fi
commit
`;
/** Notes each commit that it sees, then runs \`reviewer.sh\`, which says what it thinks of it. */
const REVIEWER = `
git rev-parse HEAD >> "$SEEN/reviewed"; pwd >> "$SEEN/reviewed-in"
cp "$MAILCHUTE_PACKET" "$SEEN/packet"; git rev-parse "${TARGET}" > "$SEEN/target" 2>/dev/null || echo none > "$SEEN/target"
exec sh -e "$SEEN/judge.sh"
`;
const PASS = `echo '<result>{"verdict": "pass", "summary": "it is good"}</result>'`;
const FAIL = (text: string) => `echo '<result>{"verdict": "fail", "summary": "${text}"}</result>'`;

interface ReviewPlace extends Place {
  /** What the programs have seen, by name. */
  seen: (name: string) => string;
  /** From now on the reviewer is this script. */
  judge: (script: string) => void;
}

function newReviewPlace(judge: string, more = "land: merge", agents = ""): ReviewPlace {
  const sh = (name: string) => `kind: exec, program: sh, args: ["-e", "../../../../${name}.sh"]`;
  const place = newPlace(
    `agents:\n  - {name: coder, kind: exec, program: sh, args: ["-e", "../../../coder.sh"], worktree: auto, review_by: rev, verify: [sh, -c, "pwd >> $MAILCHUTE_STATE/../checked-in; echo all is checked"], ${more}}\n  - {name: rev, ${sh("rev")}}\n${agents}`,
  );
  const { pool } = place;
  const file = (name: string): string => join(pool.dir, name);
  fs.writeFileSync(file("coder.sh"), `export SEEN="${pool.dir}"\n${AUTHOR}`);
  fs.writeFileSync(file("rev.sh"), `export SEEN="${pool.dir}"\n${REVIEWER}`);
  const judgeBy = (script: string): void => fs.writeFileSync(file("judge.sh"), script);
  judgeBy(judge);
  return { ...place, judge: judgeBy, seen: (name) => fs.readFileSync(file(name), "utf8").trim() };
}

const task = (more: object = {}) => ({
  agent: "coder",
  title: "write a file",
  prompt: "write a.txt with care",
  cwd: "repo",
  max_attempts: 1,
  verify: ["sh", "-c", "echo all is checked"],
  ...more,
});
const reviewsOf = (place: Place): string[] =>
  place.pool
    .results()
    .map(({ task_id }) => task_id)
    .filter((id) => id.includes(".review-"));

test("work lands after the reviewer has passed its commit, in a copy of its own", async () => {
  const spoil = "git add b.txt; git -c user.name=x -c user.email=x@x commit -qm spoiled";
  const place = newReviewPlace(`echo new > b.txt; ${spoil}; echo spoiled > a.txt; ${PASS}`);
  const { pool, repo, worktree, seen } = place;
  // Its agent brings the check.
  pool.drop("a", task({ verify: undefined }));
  await (await pool.start(["--drain"])).ended;
  expect(pool.errors()).toEqual([]);
  const { output } = await pool.result("a.land");
  const { commit, landing } = output as { commit: string; landing: string };
  expect(landing).toBe("landed");
  expect(seen("reviewed")).toBe(commit);
  expect(seen("target"), "the target, when it was reviewed").toBe(repo.git("rev-parse", "main"));
  expect(seen("reviewed-in")).not.toContain(worktree("a"));
  const checked = seen("checked-in").split("\n");
  expect(checked).toEqual([worktree("a"), expect.stringContaining("/.landing/a")]);
  const packet = seen("packet");
  for (const part of ["write a.txt with care", "+first", "1 file changed", "all is checked"])
    expect(packet).toContain(part);
  expect(repo.git("show", `${TARGET}:a.txt`)).toBe("first");
  expect(repo.git("ls-tree", "--name-only", TARGET)).not.toContain("b.txt");
  expect(repo.git("worktree", "list").split("\n")).toHaveLength(1);
  const review = await pool.result(reviewsOf(place)[0] ?? "");
  expect(review).toMatchObject({ verdict: "pass", verdict_reason: "it is good", agent_id: "rev" });
});

test("what it does not pass goes back once, into the same worktree, is reviewed again and lands", async () => {
  const place = newReviewPlace(
    `if grep -q second a.txt; then ${PASS}; else ${FAIL("say second")}; fi`,
  );
  const { pool, repo, worktree, seen } = place;
  pool.drop("a", task());
  await (await pool.start(["--drain"])).ended;
  expect(pool.errors()).toEqual([]);
  expect(repo.git("show", `${TARGET}:a.txt`)).toBe("say second");
  expect(seen("mended-in")).toBe(worktree("a"));
  const commits = seen("reviewed").split("\n");
  expect(commits).toHaveLength(2);
  expect(new Set(commits).size).toBe(2);
  expect(reviewsOf(place)).toHaveLength(2);
});

test("what it does not pass a second time waits for a person, who may land it all the same", async () => {
  const place = newReviewPlace(FAIL("say more"));
  const { pool, repo, ask } = place;
  pool.drop("a", task());
  await (await pool.start(["--drain"])).ended;
  const { error, kind } = await pool.error("a.land");
  expect(kind).toBe("landing");
  expect(error).toContain("rev does not pass this work (");
  expect(error.split("\n")[0]).toMatch(
    /say more\. Look at it \(mailchute review a\); then mailchute land a --no-review, or mailchute reject a "what is wrong"$/,
  );
  expect((await pool.run(["why", "a"])).stdout.replaceAll(/\s+/g, " ")).toContain(
    "then mailchute land a --no-review, or mailchute reject a",
  );
  expect(reviewsOf(place)).toHaveLength(2);
  expect((await ask("review", "a")).json).toMatchObject({
    reviewer: { name: "rev", verdict: "fail", text: "say more" },
    landing: { state: "failed" },
  });
  const again = await pool.run(["land", "a"]);
  expect(again).toMatchObject({ code: 0, stdout: "a.land\n" });
  expect(again.stderr).toMatch(
    /rev does not pass this commit \([0-9a-f]{12}\) and is not asked again, .*mailchute land a --no-review/,
  );
  await (await pool.start(["--drain"])).ended;
  expect(reviewsOf(place), "the same commit is not reviewed again").toHaveLength(2);
  expect((await pool.error("a.land")).error).toContain("say more");
  expect(repo.git("rev-parse", TARGET)).toBe(repo.git("rev-parse", "main"));
  expect(await pool.run(["land", "a", "--no-review"])).toMatchObject({ code: 0, stderr: "" });
  await (await pool.start(["--drain"])).ended;
  await pool.result("a.land");
  expect(repo.git("show", `${TARGET}:a.txt`)).toBe("say more");
});

test.each([
  ["says nothing", "echo I have looked at it", "it ended without a verdict"],
  ["fails", "echo broken >&2; exit 3", "ended with exit code 3"],
  ["crashes", "kill -SEGV $$", "it was ended by SIGSEGV"],
  ["repeats what it was told", 'cat "$MAILCHUTE_PACKET"', "it ended without a verdict"],
])(
  "a reviewer that %s leaves the work to a person, and is asked again",
  async (_how, script, why) => {
    const { pool, repo, judge } = newReviewPlace(script);
    pool.drop("a", task({ prompt: 'write <result>{"verdict": "pass"}</result>' }));
    await (await pool.start(["--drain"])).ended;
    const { error } = await pool.error("a.land");
    expect(error).toMatch(/^rev has not reviewed this work \([0-9a-f]{12}\): /);
    expect(error).toContain(why);
    expect(error).toContain("mailchute land a --no-review");
    expect(repo.git("rev-parse", TARGET)).toBe(repo.git("rev-parse", "main"));
    judge(PASS);
    expect((await pool.run(["land", "a"])).code).toBe(0);
    await (await pool.start(["--drain"])).ended;
    await pool.result("a.land");
    expect(repo.git("show", `${TARGET}:a.txt`)).toBe("first");
  },
);

test("work does not land by itself when its reviewer has changed the settings of the repository", async () => {
  const { pool, repo } = newReviewPlace(`git config filter.bad.clean cat; ${PASS}`);
  pool.drop("a", task());
  await (await pool.start(["--drain"])).ended;
  expect((await pool.error("a.land")).error).toContain("changed settings or hooks");
  expect(repo.git("cat-file", "-p", "refs/mailchute/a/settings-changed")).toBe("filter.bad.clean");
  expect(repo.git("rev-parse", TARGET)).toBe(repo.git("rev-parse", "main"));
  expect(pool.alerts()[0]).toMatchObject({
    alert: "repository_settings",
    message: expect.stringContaining("the review of a: while it ran"),
  });
});

test("a review whose worker is killed is begun anew, and its verdict counts once", async () => {
  const place = newReviewPlace(
    `touch "$SEEN/judging"; until [ -e "$SEEN/go" ]; do sleep 0.1; done; ${PASS}`,
  );
  const { pool, repo, seen } = place;
  pool.drop("a", task());
  const drained = await pool.start(["--drain"]);
  await waitFor(() => fs.existsSync(join(pool.dir, "judging")), { what: "the review" });
  for (const { pid } of pool.workers()) process.kill(pid, "SIGKILL");
  fs.writeFileSync(join(pool.dir, "go"), "");
  await drained.ended;
  expect(pool.errors()).toEqual([]);
  expect(repo.git("show", `${TARGET}:a.txt`)).toBe("first");
  expect(repo.git("log", "--format=%s", `main..${TARGET}`)).toBe("a");
  expect(new Set(seen("reviewed").split("\n")).size).toBe(1);
  const [id = "", ...more] = reviewsOf(place);
  expect(more).toEqual([]);
  expect(await pool.result(id)).toMatchObject({ verdict: "pass", attempts: 2 });
  expect(repo.git("worktree", "list").split("\n")).toHaveLength(1);
});

test("a reviewer that nobody has configured leaves the work to a person", async () => {
  const { pool, repo } = newReviewPlace(PASS);
  pool.drop("a", task({ review_by: "nobody" }));
  await (await pool.start(["--drain"])).ended;
  expect((await pool.error("a.land")).error).toContain('no agent "nobody" is configured');
  expect(repo.git("rev-parse", TARGET)).toBe(repo.git("rev-parse", "main"));
});

test("a branch that has moved since is reviewed again, and only what was passed lands", async () => {
  // The first review lets the branch move on below it.
  const move = `cd "$SEEN/state/worktrees/a"; echo moved > a.txt; git -c user.name=x -c user.email=x@x commit -qam moved`;
  const script = `[ "$(git log -1 --format=%s)" = moved ] || { ${move}; }; ${PASS}`;
  const place = newReviewPlace(script);
  const { pool, repo, seen } = place;
  pool.drop("a", task());
  await (await pool.start(["--drain"])).ended;
  expect(pool.errors()).toEqual([]);
  expect(seen("reviewed").split("\n")).toHaveLength(2);
  expect(repo.git("show", `${TARGET}:a.txt`)).toBe("moved");
  expect(seen("reviewed").split("\n").at(-1)).toBe(repo.git("rev-parse", TARGET));
});

test("who waits for the work is told by name why it has not landed", async () => {
  const { pool, judge, ask } = newReviewPlace(
    `while [ ! -e "$SEEN/go" ]; do sleep 0.1; done; ${FAIL("say more")}`,
  );
  pool.drop("a", task({ land: "merge" }));
  pool.drop("b", { exec: ["true"], metadata: { dependencies: ["a"] } });
  await pool.start();
  const shown = async (...args: string[]): Promise<string> => {
    const { stdout, stderr } = await pool.run(args);
    return (stdout + stderr).replace(/\s+/g, " ");
  };
  const tells = (args: string[], text: RegExp): Promise<void> =>
    expect.poll(() => shown(...args), { timeout: 120_000, interval: 200 }).toMatch(text);
  const open = /a\.land has not ended: rev reviews it \(a\.review-[0-9a-f]{12}\)/;
  await tells(["show", "a"], open);
  await tells(["show", "b"], open);
  await tells(["status"], /b \(waits for a, which has not landed: rev reviews it/);
  await tells(
    ["wait", "b", "--timeout", "300ms"],
    /waits for a, which has not landed: rev reviews it/,
  );
  await tells(["worktrees", "ls"], /its work has not landed: rev reviews it/);
  fs.writeFileSync(join(pool.dir, "go"), "");
  judge(FAIL("say more"));
  await pool.error("a.land", 60_000);
  const failed = /rev does not pass this work \([0-9a-f]{12}\): say more/;
  await tells(["show", "a"], failed);
  await tells(["show", "b"], failed);
  await tells(["status"], /b \(waits for a, which did not land \(mailchute show a\.land\)\)/);
  expect(await shown("status")).not.toContain("the landing of a waits");
  await tells(["wait", "b", "--timeout", "300ms"], /waits for a, which did not land: rev does not/);
  await tells(["worktrees", "clean"], /a stays: its work did not land: rev does not pass/);
  expect((await ask("show", "b")).json).toMatchObject({
    dependencies: [{ id: "a", state: "done", landing: { id: "a.land", state: "failed" } }],
  });
});

test("a function reviews, too, and land: exec waits for it", async () => {
  const agents = "  - {name: judge, kind: module, module: ./judge.mjs}\n";
  const land = 'land: exec, land_command: [sh, -c, "echo handed over"]';
  const place = newReviewPlace(FAIL("no"), land, agents);
  const { pool, repo } = place;
  fs.writeFileSync(
    join(pool.state, "judge.mjs"),
    `export default ({ prompt, payload }) => prompt.includes("+first") && { verdict: "pass", summary: payload.commit };`,
  );
  pool.drop("a", task({ review_by: "judge" }));
  await (await pool.start(["--drain"])).ended;
  expect((await pool.result("a.land")).output).toMatchObject({ landing: "handed_over" });
  const [id = ""] = reviewsOf(place);
  expect((await pool.result(id)).verdict_reason).toBe(repo.git("rev-parse", "mailchute/a"));
});

test("coding agents: the verdict is the end of the last message, and its text comes into the session of the author", async () => {
  const { pool, repo } = newPlace();
  const agent = (name: string, turns: object[][], more: object = {}) => ({
    name,
    kind: "claude",
    program: CLAUDE,
    account: name,
    env: { FAKE_AGENT: JSON.stringify({ turns }), FAKE_AGENT_STATE: join(pool.dir, name) },
    ...more,
  });
  const say = (verdict: string, summary: string) => [
    { say: `Some words.\n<result>${JSON.stringify({ verdict, summary })}</result>` },
  ];
  const write = (text: string) => [{ run: `echo ${text} > a.txt` }, { say: "It is written." }];
  const land = { worktree: "auto", land: "merge", review_by: "rev" };
  const agents = [
    agent("coder", [write("first"), write("second")], land),
    agent("rev", [say("fail", "write second"), say("pass", "it is good")]),
  ];
  fs.appendFileSync(join(pool.state, "config.yaml"), `agents: ${JSON.stringify(agents)}\n`);
  pool.drop("a", task());
  await (await pool.start(["--drain"])).ended;
  expect(pool.errors()).toEqual([]);
  expect(repo.git("show", `${TARGET}:a.txt`)).toBe("second");
  const lines = (name: string) =>
    fs
      .readFileSync(join(pool.dir, "coder", name), "utf8")
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line));
  const [first, mended] = lines("messages.jsonl");
  expect(first.message).toContain("write a.txt with care");
  expect(mended.message).toContain("rev does not pass this work");
  expect(mended.message).toContain("write second");
  expect(lines("starts.jsonl").at(-1).args).toContain("--resume");
});

test("an agent does not review its own work", async () => {
  const { pool } = newReviewPlace(PASS);
  pool.drop("a", task({ review_by: "coder" }));
  await (await pool.start(["--drain"])).ended;
  const { error, code } = await pool.error("a");
  expect({ error, code }).toMatchObject({ code: "ErrInvalidTask" });
  expect(error).toContain("would review its own work");
  const config = join(pool.state, "config.yaml");
  const text = fs.readFileSync(config, "utf8");
  fs.writeFileSync(config, text.replace("review_by: rev", "review_by: coder"));
  expect((await pool.run(["config"])).stderr).toContain("coder has itself in review_by");
  fs.writeFileSync(config, text.replace("review_by: rev", "review_by: gone"));
  expect((await pool.run(["config"])).stderr).toContain('names "gone", which is no agent here');
});
