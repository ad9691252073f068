/** Work that was mended well lands, also when the target moved while its agent mended it: a real pool, a real git. */
import fs from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { mayMend } from "../../../src/parts/landing/send-back.ts";
import { takeSome } from "../../support/take-some.ts";
import { waitFor } from "../../support/wait-for.ts";
import { newPlace } from "../worktrees/place.ts";

takeSome();

const TARGET = "mailchute/integration";
/** Writes `same.txt`; told of a conflict, it keeps both lines. `OVERTAKE` then says how often the target moves before the run ends. */
const AGENT = `
commit() { git add -A; git -c user.name=x -c user.email=x@x commit -qm "$MAILCHUTE_TASK_ID"; }
overtake() {
  git worktree add -q --detach ../.other-$MAILCHUTE_TASK_ID ${TARGET}
  ( cd ../.other-$MAILCHUTE_TASK_ID; echo "before $MAILCHUTE_TASK_ID" >> same.txt; commit; git update-ref refs/heads/${TARGET} HEAD )
  git worktree remove --force ../.other-$MAILCHUTE_TASK_ID
}
id="$MAILCHUTE_TASK_ID"
if grep -q worktree_of "$MAILCHUTE_TASK_FILE"; then
  [ -z "$GO" ] || { touch "$GO.waits"; until [ -e "$GO" ]; do sleep 0.05; done; }
  git -c user.name=x -c user.email=x@x rebase -q ${TARGET} >/dev/null 2>&1 || {
    { git show "${TARGET}:same.txt"; echo "mended $id"; } > same.txt; git add -A
    GIT_EDITOR=true git -c user.name=x -c user.email=x@x rebase --continue >/dev/null; }
else echo "$id" >> same.txt; commit; fi
case " $OVERTAKE " in *" $id "*) overtake;; esac
`;

function newCoder(env: Record<string, string>): ReturnType<typeof newPlace> {
  const place = newPlace(
    `env_allow: [OVERTAKE, GO]\nagents: [{name: coder, kind: exec, program: sh, args: ["-e", ../../../agent.sh], worktree: auto, land: merge}]\n`,
  );
  fs.writeFileSync(join(place.pool.dir, "agent.sh"), AGENT);
  place.repo.git("branch", TARGET);
  Object.assign(place.env, env);
  return place;
}
const task = { agent: "coder", prompt: "write it", cwd: "repo", max_attempts: 1 };

test("each move of the target while the agent mends allows one more fix, and the work lands", async () => {
  const { pool, repo } = newCoder({ OVERTAKE: "b b.fix-1 b.fix-2" });
  pool.drop("b", task);
  await (await pool.start(["--drain"])).ended;
  expect(pool.errors()).toEqual([]);
  await pool.result("b.fix-3");
  expect(repo.git("show", `${TARGET}:same.txt`)).toContain("mended b.fix-3");
});

test("a landing waits while a fix of other work changes the same files, and the mended work lands first", async () => {
  const place = newCoder({ OVERTAKE: "b" });
  const { pool, repo } = place;
  const go = join(pool.dir, "go");
  place.env["GO"] = go;
  pool.drop("b", task);
  const running = await pool.start();
  await waitFor(() => fs.existsSync(`${go}.waits`), { what: "the fix of b" });
  // Its base is the target, so it has no conflict of its own.
  repo.git("checkout", "-q", "--detach", TARGET);
  pool.drop("d", { ...task, prompt: "write more" });
  await waitFor(
    async () => {
      const { stdout } = await pool.run(["show", "d.land"]);
      return stdout.includes("b.fix-1 mends other work on the same files");
    },
    { what: "the landing of d waits" },
  );
  fs.writeFileSync(go, "");
  await pool.result("b.land");
  await pool.result("d.land");
  await pool.run(["stop"]);
  await running.ended;
  const fixes = pool.results().filter(({ task_id: id }) => id.startsWith("b.fix"));
  expect(fixes).toHaveLength(1);
});

test("an agent gets work back once for each cause, and once more only when the target has moved, at most ten times", () => {
  const state = { v: 1, lease: "l", wait: null, fix: { id: "a.fix-1", n: 1, text: "" } } as const;
  const unfit = { cause: "work", target: "one" } as const;
  expect(mayMend({ ...state, fix: null }, unfit)).toBe(true);
  const sent = { ...state, sent_back: ["work" as const], sent_at: "one" };
  expect(mayMend(sent, unfit)).toBe(false);
  expect(mayMend(sent, { ...unfit, target: "two" })).toBe(true);
  expect(mayMend(sent, { cause: "review" })).toBe(true);
  expect(mayMend({ ...sent, sent_back: ["review"] }, { cause: "review" })).toBe(false);
  const tenth = { ...sent, fix: { id: "a.fix-10", n: 10, text: "" } };
  expect(mayMend(tenth, { ...unfit, target: "two" })).toBe(false);
});
