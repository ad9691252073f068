/** What git does not show: mailchute keeps it all the same. */
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { breakSources, type Change } from "../../support/broken.ts";
import { seededRandom } from "../../support/seeded-random.ts";
import { tempDir } from "../../support/temp-dir.ts";
import { IS_WHOLE, WALKS_SEED } from "../../support/walks.ts";
import { type Act, LANDS, randomWalk, SUBMODULE, type Walk, walk } from "./unseen-walk.ts";

const SRC = fileURLToPath(new URL("../../../src", import.meta.url));
const WALKS = IS_WHOLE ? 400 : 8;

test("random worktrees: each byte is on the branch, in a save, or still in the worktree", async () => {
  const bad: string[] = [];
  for (let n = 0; n < WALKS; n++) {
    const seed = WALKS_SEED + n;
    const one = randomWalk(seededRandom(seed));
    const lost = await walk(tempDir(), one, SRC).catch((error: unknown) => [String(error)]);
    if (lost.length > 0) bad.push(`seed ${seed}: ${lost.join(", ")}: ${JSON.stringify(one)}`);
  }
  expect(bad).toEqual([]);
});

const PLAIN: Walk = { settings: [], isSparse: false, setup: [], acts: [], isCompleted: true };
const edit = (script: string): Act[] => [{ script }];
const [OUTSIDE, ASSUMED] = LANDS as [Act, Act];

/** Each one is right with our sources, and wrong with the broken ones. */
const SORTED = "const { changed, fresh } = sort(seen);";
const BROKEN: readonly [what: string, one: Partial<Walk>, ...changes: Change[]][] = [
  [
    "a file marked skip-worktree",
    { acts: edit("git update-index --skip-worktree a.txt; echo x > a.txt"), isCompleted: false },
    trustsMarks(),
  ],
  [
    "a tracked file outside of the cone",
    { isSparse: true, acts: edit("mkdir docs; echo x > docs/d.md"), isCompleted: false },
    { file: "git/files-look.ts", from: SORTED, to: `${SORTED} changed.length = 0;` },
  ],
  [
    "a new file outside of the cone",
    { isSparse: true, acts: [OUTSIDE] },
    { file: "git/own-index.ts", from: '"core.sparseCheckout=false",', to: "" },
    {
      file: "git/own-index.ts",
      from: '["update-index", "--add", "--replace", "-z", "--stdin"]',
      to: '["add", "--pathspec-from-file=-", "--pathspec-file-nul"]',
    },
  ],
  ["a file marked assume-unchanged", { acts: [ASSUMED] }, trustsMarks()],
  [
    "a submodule with a change",
    { setup: [SUBMODULE], acts: edit("echo x > sub/README.md") },
    {
      file: "git/inner-files.ts",
      from: "if (changed.size === 0) return result;",
      to: "return result;",
    },
  ],
  [
    "a file that git refuses",
    {
      settings: ["core.autocrlf=input", "core.safecrlf=true"],
      acts: [{ script: "printf 'x\\r\\n' > y.txt; echo fine > ok.txt", lands: ["ok.txt", "fine"] }],
    },
    { file: "git/own-index.ts", from: "if (!isRefusal(error)) throw error;", to: "throw error;" },
  ],
  [
    "line ends that git would give back in another way",
    { settings: ["core.autocrlf=input"], acts: edit("printf 'a\\r\\nb\\n' > mixed.txt") },
    {
      file: "git/files-look.ts",
      from: "converted.filter((path) => !back.has(path))",
      to: "[]",
    },
  ],
];

function trustsMarks(): Change {
  return {
    file: "git/files-look.ts",
    from: SORTED,
    to: `const { changed: all, fresh } = sort(seen);
      const listed = splitNul((await askGit(call, "ls-files", "-v", "-z")).out.toString("latin1"));
      const marked = new Set(listed.filter((one) => /^[a-zS]/.test(one)).map((one) => one.slice(2)));
      const changed = all.filter((path) => !marked.has(path));`,
  };
}

test.each(BROKEN)("%s is kept; a variant that loses it is noticed", async (_, one, ...changes) => {
  expect(await walk(tempDir(), { ...PLAIN, ...one }, SRC)).toEqual([]);
  const broken = join(breakSources(...changes), "src");
  const lost = await walk(tempDir(), { ...PLAIN, ...one }, broken).catch(String);
  expect(lost).not.toEqual([]);
});
