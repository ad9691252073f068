/** A git repository of its own for a test, and a git without the settings of this machine. */
import { execFileSync, spawnSync } from "node:child_process";
import fs from "node:fs";
import os from "node:os";
import { join } from "node:path";

export interface TestRepository {
  dir: string;
  /** Runs git there. @returns what it printed, without the line end */
  git(...args: string[]): string;
  /** Writes files and commits them. */
  commit(files: Readonly<Record<string, string>>, message?: string): string;
}

/** Variables for every git of a test. */
export const GIT_ENVIRONMENT: Readonly<Record<string, string>> = {
  GIT_CONFIG_NOSYSTEM: "1",
  GIT_CONFIG_GLOBAL: "/dev/null",
  GIT_AUTHOR_NAME: "A Person",
  GIT_AUTHOR_EMAIL: "person@example.invalid",
  GIT_COMMITTER_NAME: "A Person",
  GIT_COMMITTER_EMAIL: "person@example.invalid",
};

/** Arguments of `git init` for each way in which this git can keep refs. */
export function waysToKeepRefs(): string[][] {
  const dir = fs.mkdtempSync(join(os.tmpdir(), "mailchute-refs-"));
  try {
    const tables = ["--ref-format=reftable"];
    const { status } = spawnSync("git", ["init", ...tables, dir], { stdio: "ignore" });
    return status === 0 ? [[], tables] : [[]];
  } finally {
    fs.rmSync(dir, { recursive: true });
  }
}

/** Makes a repository with one commit. @param init more arguments of `git init` */
export function newRepository(dir: string, ...init: string[]): TestRepository {
  fs.mkdirSync(dir, { recursive: true });
  const repository = repositoryAt(dir);
  repository.git("init", "--quiet", "--initial-branch=main", ...init);
  repository.commit({ "README.md": "hello\n", ".gitignore": "*.log\nbuild/\n" }, "first");
  return repository;
}

/** Makes all folders for objects: else git makes one when an object needs it, and how many steps it takes depends on chance. */
export function makeObjectFolders({ dir }: Pick<TestRepository, "dir">): void {
  for (let n = 0; n < 256; n++)
    fs.mkdirSync(join(dir, ".git/objects", n.toString(16).padStart(2, "0")), { recursive: true });
}

export function repositoryAt(dir: string): TestRepository {
  const git = (...args: string[]): string =>
    execFileSync("git", args, {
      cwd: dir,
      encoding: "utf8",
      env: { ...process.env, ...GIT_ENVIRONMENT },
      stdio: ["ignore", "pipe", "pipe"],
    }).replace(/\n$/, "");
  return {
    dir,
    git,
    commit(files, message = "work") {
      for (const [name, text] of Object.entries(files)) fs.writeFileSync(join(dir, name), text);
      git("add", "--all");
      git("commit", "--quiet", "--message", message);
      return git("rev-parse", "HEAD");
    },
  };
}
