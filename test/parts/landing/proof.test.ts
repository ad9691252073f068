/** The proof of a landing travels with the repository, and can be tried again on another clone. */
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import type { Proof } from "../../../src/parts/landing/proof.ts";
import { repositoryAt, type TestRepository } from "../../support/git-repository.ts";
import { IS_WHOLE } from "../../support/walks.ts";
import { inWorktree, newPlace, type Place } from "../worktrees/place.ts";
import { PROJECTS, putProject } from "./cheats/projects.ts";

const LAUNCHER = fileURLToPath(new URL("../../../bin/mailchute.js", import.meta.url));
const { js } = PROJECTS;
const MENDS = "sed -i 's/-/+/' src/add.js";
const GUARDS = { protect: ["@checks"], verify_from: "target" };
const verify = js?.verify ?? [];

/** @returns a clone with the proofs */
function cloneOf({ pool, repo }: Place): TestRepository {
  const dir = join(pool.dir, "clone");
  execFileSync("git", ["clone", "--quiet", repo.dir, dir], { stdio: "ignore" });
  const clone = repositoryAt(dir);
  clone.git("fetch", "--quiet", "origin", "refs/mailchute-proof/*:refs/mailchute-proof/*");
  return clone;
}

/** `mailchute prove ARGS` in a repository. */
async function prove(place: Place, { dir }: TestRepository, ...args: string[]) {
  const env = { ...process.env, ...place.env, NO_COLOR: "1" };
  const child = spawn(process.execPath, [LAUNCHER, "prove", ...args], { cwd: dir, env });
  const [out, said]: [string[], string[]] = [[], []];
  child.stdout.on("data", (chunk) => out.push(String(chunk)));
  child.stderr.on("data", (chunk) => said.push(String(chunk)));
  const [code] = (await once(child, "close")) as [number | null];
  return { code, stdout: out.join(""), stderr: said.join("") };
}

test("each landing has a proof that comes true again on another clone", async () => {
  const place = newPlace();
  const { pool, repo } = place;
  putProject(repo, js ?? { verify: [], files: {} });
  const land = (script: string, more: object) =>
    inWorktree(script, { land: "merge", verify, ...more });
  const orders = {
    mends: land(MENDS, { ...GUARDS, prove: true }),
    "with-test": land(`cp test/add.test.js test/b.test.js; echo a > a`, {
      ...GUARDS,
      dependencies: ["mends"],
    }),
    "by-commit": land("echo b > b; commit", { dependencies: ["mends"] }),
    "in-folder": {
      ...land("echo c > c", { dependencies: ["mends"] }),
      cwd: "repo/src",
      verify: ["node", "-e", "require('./add')"],
    },
    merges: land(
      "git checkout -q -b side; echo d > d; commit; git checkout -q -; echo e > e; commit; git merge -q -m m side; git branch -D side",
      { dependencies: ["with-test", "by-commit"] },
    ),
    unchecked: inWorktree("echo f > f", { land: "merge", dependencies: ["mends"] }),
  };
  const more = Array.from({ length: IS_WHOLE ? 14 : 0 }, (_, n) => {
    const script = `echo ${n} > n${n}; ${n % 2 === 0 ? "commit" : ""}`;
    return [`more-${n}`, land(script, { dependencies: ["mends"], ...(n % 3 === 0 ? GUARDS : {}) })];
  });
  Object.assign(orders, Object.fromEntries(more));
  for (const [id, order] of Object.entries(orders)) pool.drop(id, order);
  await (await pool.start(["--drain"])).ended;
  expect(pool.errors().map(({ error }) => error)).toEqual([]);
  const clone = cloneOf(place);
  for (const id of Object.keys(orders)) {
    const { code, stdout, stderr } = await prove(place, clone, id, "--again", "--json");
    expect({ code, stderr: code === 0 ? "" : stderr, id }).toEqual({ code: 0, stderr: "", id });
    const { proof, again }: { proof: Proof; again: unknown } = JSON.parse(stdout);
    expect(again, id).toEqual({ differences: [] });
    expect(proof.predicate.check === null, id).toBe(id === "unchecked");
    const commit = proof.subject[0].digest.gitCommit;
    expect((await prove(place, clone, commit)).stdout, id).toContain(`task       ${id}`);
  }
  expect((await pool.result("unchecked.land")).verdict_reason).toContain("unchecked");
  expect(
    repo.git("log", "--format=%(trailers:key=Mailchute-Task,valueonly)", "mailchute/integration"),
  ).toContain("mends");
});

test("a proof that somebody has changed is told", async () => {
  const place = newPlace();
  const { pool, repo } = place;
  putProject(repo, js ?? { verify: [], files: {} });
  pool.drop("a", inWorktree(MENDS, { land: "merge", verify, ...GUARDS, prove: true }));
  await (await pool.start(["--drain"])).ended;
  const clone = cloneOf(place);
  const ref = "refs/mailchute-proof/a";
  const text = clone.git("cat-file", "blob", ref);
  const change = (from: RegExp, to: string): void => {
    const input = text.replace(from, to);
    expect(input).not.toBe(text);
    const options = { cwd: clone.dir, input, encoding: "utf8" } as const;
    const blob = execFileSync("git", ["hash-object", "-w", "--stdin"], options).trim();
    clone.git("update-ref", ref, blob);
  };
  const main = clone.git("rev-parse", "origin/main");
  for (const [from, to, said] of [
    [/"gitCommit": "\w+"/, `"gitCommit": "${main}"`, "the change is another one"],
    [/"diff_sha256": "\w+"/, `"diff_sha256": "${"0".repeat(64)}"`, "the change is another one"],
    [/"onto": "\w+"/, `"onto": "${"1".repeat(40)}"`, "is not here"],
    [/"verify": \[\s*\[\s*"npm"/, '"verify": [["false"', "the check fails here"],
    [/"prove": true/, '"prove": ["true"]', "passes on the target too"],
  ] as const) {
    change(from, to);
    const { code, stdout } = await prove(place, clone, "a", "--again");
    expect([code, stdout], said).toEqual([1, expect.stringContaining(said)]);
  }
});

test("prove says when there is no proof", async () => {
  const place = newPlace();
  const { code, stderr } = await prove(place, place.repo, "nothing");
  expect([code, stderr]).toEqual([3, expect.stringContaining("no proof")]);
});
