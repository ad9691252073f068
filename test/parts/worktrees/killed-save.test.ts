/** A git, or the worker, that is killed while the work of a completed run is saved: the work lands all the same. */
import fs from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { countingGit, type Victim } from "../../support/counting-git.ts";
import { takeSome } from "../../support/take-some.ts";
import { inWorktree, newPlace, type Place } from "./place.ts";

takeSome();

/** A run that leaves work beside its branch, so that its end saves, commits and writes the order for the landing. */
async function killedAt(words: string, victim: Victim, more: object = {}): Promise<Place> {
  const place = newPlace();
  const git = countingGit(join(place.pool.dir, "counted"), place.env);
  git.arm([{ at: words, moment: "before", victim }]);
  const script = "echo x > x.txt; git add x.txt; echo y > x.txt; echo ran >> ../../../ran";
  place.pool.drop("a", inWorktree(script, { land: "merge", ...more }));
  await (await place.pool.start(["--drain"])).ended;
  expect(git.calls().filter(({ isKilled }) => isKilled)).toHaveLength(1);
  git.disarm();
  return place;
}

/** Calls at the end of a run: it commits, saves, and looks what there is to land. */
const CALLS = [
  "update-index --add --replace",
  "commit-tree",
  "update-ref refs/mailchute/a/1",
  "update-ref -m commit: by mailchute",
  "--shortstat",
];

test.each(CALLS)(
  "a git that is killed alone at `%s`: it is tried again in the same run",
  async (words) => {
    const { pool, repo } = await killedAt(words, "git");
    expect(await pool.result("a")).toMatchObject({ landing: "pending", attempts: 1 });
    await pool.result("a.land");
    expect(repo.git("show", "mailchute/integration:x.txt")).toBe("y");
    expect(fs.readFileSync(join(pool.dir, "ran"), "utf8")).toBe("ran\n");
  },
);

test.each(CALLS)(
  "the worker is killed at `%s`: another run completes, and its work lands",
  async (words) => {
    const { pool, repo } = await killedAt(words, "caller", { max_attempts: 2 });
    expect(await pool.result("a")).toMatchObject({ landing: "pending", attempts: 2 });
    await pool.result("a.land");
    expect(repo.git("show", "mailchute/integration:x.txt")).toBe("y");
  },
);
