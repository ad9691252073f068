/**
 * What a look at a large worktree costs in which nothing has changed, beside a bare walk over the same files in the same process. It counts
 * time of the processor, because other programs may be at work.
 */
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import os from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { lookAtFiles, noteCheckout } from "../../src/git/files-look.ts";
import { openRepository } from "../../src/git/repository.ts";
import { newRepository, type TestRepository } from "../support/git-repository.ts";
import { tempDir } from "../support/temp-dir.ts";

/** The short form takes a fifth of the 100,000 files. */
const DIRS = process.env["MAILCHUTE_WALKS"] === "all" ? 1000 : 200;
const FILES = 100;
/** A look also reads the tree and our own index, and compares: three bare walks on an idle machine, which are a second for 100,000 files. */
const RATIO_MAX = 5;
const TRIES = 4;

function bareWalk(dir: string): number {
  let count = 0;
  for (const entry of fs.readdirSync(dir, { withFileTypes: true })) {
    const path = `${dir}/${entry.name}`;
    if (entry.isDirectory()) count += entry.name === ".git" ? 0 : bareWalk(path);
    else if (fs.lstatSync(path, { bigint: true }).size > 0n) count++;
  }
  return count;
}

/** The tree of all the files, without the time that git takes to look at each of them. */
function treeOf(repo: TestRepository): string {
  const make = (lines: readonly string[]): string =>
    execFileSync("git", ["mktree"], { cwd: repo.dir, input: `${lines.join("\n")}\n` })
      .toString()
      .trim();
  const blob = repo.git("hash-object", "-w", "d0/file0.txt");
  const folder = make(Array.from({ length: FILES }, (_, n) => `100644 blob ${blob}\tfile${n}.txt`));
  const folders = Array.from({ length: DIRS }, (_, d) => `040000 tree ${folder}\td${d}`);
  return make([...repo.git("ls-tree", "HEAD").split("\n"), ...folders]);
}

/** In µs of the processor. */
async function costOf(act: () => unknown): Promise<number> {
  const before = process.cpuUsage();
  await act();
  const { user, system } = process.cpuUsage(before);
  return user + system;
}

test("a look at many files that have not changed costs some bare walks; one without our index costs many", async () => {
  // In memory: some disks take minutes to remove so many files.
  const parent = fs.existsSync("/dev/shm") ? "/dev/shm" : os.tmpdir();
  const repo = newRepository(join(tempDir(onTestFinished, parent), "repo"));
  for (let d = 0; d < DIRS; d++) {
    fs.mkdirSync(join(repo.dir, `d${d}`));
    for (let n = 0; n < FILES; n++) fs.writeFileSync(join(repo.dir, `d${d}/file${n}.txt`), "same");
  }
  const tree = treeOf(repo);
  const { commonDir, env } = await openRepository(repo.dir);
  const call = { cwd: repo.dir, gitDir: commonDir, env };
  await noteCheckout(call, commonDir, tree);
  const look = async (): Promise<void> => {
    const { modified, untracked } = await lookAtFiles(call, commonDir, tree);
    expect([modified, untracked]).toEqual([[], []]);
  };
  const walk = (): void => expect(bareWalk(repo.dir)).toBe(DIRS * FILES + 2);
  // The least of some tries each: a walk beside other programs can cost twice what it costs alone.
  let walked = Number.POSITIVE_INFINITY;
  let looked = Number.POSITIVE_INFINITY;
  for (let n = 0; n < TRIES; n++) {
    walked = Math.min(walked, await costOf(walk));
    looked = Math.min(looked, await costOf(look));
  }
  const beganMs = performance.now();
  await look();
  const tookMs = Math.round(performance.now() - beganMs);
  process.stderr.write(
    `a look at ${DIRS * FILES} files: ${tookMs} ms, ${(looked / walked).toFixed(1)} bare walks\n`,
  );
  expect(looked / walked).toBeLessThan(RATIO_MAX);
  fs.rmSync(join(commonDir, "mailchute-files"));
  const anew = await costOf(look);
  process.stderr.write(`without our index: ${(anew / walked).toFixed(1)} bare walks\n`);
  expect(anew / walked).toBeGreaterThan(RATIO_MAX);
});
