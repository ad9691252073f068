/** What worktrees, indexes and stash entries hold, and whether it is still there. Asks only git. */
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import { join } from "node:path";
import { GIT } from "./counting-git.ts";
import { GIT_ENVIRONMENT, type TestRepository } from "./git-repository.ts";

const linesOf = (text: string): string[] => text.split("\n").filter((line) => line !== "");

/** Objects that a worktree holds now: its heads so far, its index and its files, and all refs and stash entries of the repository. */
export function heldObjects(repo: TestRepository, worktree: string): string[] {
  const index = join(repo.dir, ".git", "index-of-a-test");
  const there = (more: Record<string, string>, ...args: string[]): string =>
    execFileSync(GIT, ["-C", worktree, ...args], {
      encoding: "utf8",
      env: { ...process.env, ...GIT_ENVIRONMENT, ...more },
      stdio: ["ignore", "pipe", "pipe"],
    }).trim();
  there({ GIT_INDEX_FILE: index }, "add", "--all");
  const files = there({ GIT_INDEX_FILE: index }, "write-tree");
  fs.rmSync(index);
  const refs = linesOf(repo.git("for-each-ref", "--format=%(objectname)"));
  const log = (...of: string[]): string[] =>
    linesOf(there({}, "log", "--walk-reflogs", "--format=%H", ...of, "--"));
  const stashes = repo.git("for-each-ref", "refs/stash") === "" ? [] : log("refs/stash");
  return below(repo, [files, there({}, "write-tree"), ...log("HEAD"), ...refs, ...stashes]);
}

/** These objects, and all that they name. */
export function below(repo: TestRepository, roots: readonly string[]): string[] {
  const listed = linesOf(repo.git("rev-list", "--objects", ...roots));
  return [...new Set([...roots, ...listed.map((line) => line.split(" ")[0] ?? "")])];
}

/** Of these objects, those that no ref has. First git removes all that nothing names, as it does by itself after some weeks. */
export function lostObjects(repo: TestRepository, objects: readonly string[]): string[] {
  repo.git("reflog", "expire", "--expire=now", "--all");
  repo.git("gc", "--quiet", "--prune=now");
  const refs = linesOf(repo.git("for-each-ref", "--format=%(objectname)"));
  const kept = new Set(below(repo, refs));
  return objects.filter((object) => !kept.has(object));
}
