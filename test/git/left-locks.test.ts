/** Locks of refs that a killed git has left: whichever call waits for one removes it, and no lock that a living git may hold. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import fs from "node:fs";
import { delimiter, dirname, join } from "node:path";
import { expect, onTestFinished, test, vi } from "vitest";
import { dropLeftLock, removeLock, type SeenLock } from "../../src/git/left-locks.ts";
import { atCommonDir, openRepository } from "../../src/git/repository.ts";
import { askGit } from "../../src/git/run-git.ts";
import {
  GIT_ENVIRONMENT,
  newRepository,
  type TestRepository,
  waysToKeepRefs,
} from "../support/git-repository.ts";
import { onProc } from "../support/needs-proc.ts";
import { tempDir } from "../support/temp-dir.ts";
import { waitFor } from "../support/wait-for.ts";

/** As one that was left some time ago. */
function leave(repo: TestRepository, name: string, ageMs = 60_000): string {
  const lock = join(fs.realpathSync(repo.dir), ".git", `${name}.lock`);
  fs.mkdirSync(dirname(lock), { recursive: true });
  fs.writeFileSync(lock, "");
  const time = new Date(Date.now() - ageMs);
  fs.utimesSync(lock, time, time);
  return lock;
}

/** What git says when it finds the lock. */
const said = (lock: string): string =>
  `fatal: Unable to create '${lock}': File exists.\n\nAnother git process seems to be running`;

interface RunningGit {
  mayHave(lock: SeenLock | undefined): boolean;
  end(): Promise<void>;
}

async function startGit(cwd: string, ...args: string[]): Promise<RunningGit> {
  // The name of the program is what counts.
  const program = join(tempDir(), "git");
  fs.writeFileSync(program, "#!/bin/sh\necho on\nread -r end\n", { mode: 0o755 });
  const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !/GIT/.test(name)));
  const child = spawn(program, args, { cwd, env, stdio: ["pipe", "pipe", "inherit"] });
  onTestFinished(() => void child.kill());
  const ended = once(child, "close");
  await once(child.stdout, "data");
  return {
    mayHave: (lock) => lock?.holders.some((one) => one.startsWith(`${child.pid} `)) === true,
    async end() {
      child.stdin.end();
      await ended;
    },
  };
}

/** Other gits of this machine, which may have been told to work there, end soon. */
async function isDropped(lock: string, before?: SeenLock): Promise<void> {
  let seen = before;
  await waitFor(
    () => {
      seen = dropLeftLock(said(lock), [], seen);
      return !fs.existsSync(lock);
    },
    { what: `the end of ${lock}` },
  );
}

test.each([
  ["refs/mailchute/a/landing", ["update-ref", "refs/mailchute/a/landing", "HEAD"]],
  ["refs/heads/mailchute/integration", ["branch", "-f", "mailchute/integration"]],
  ["packed-refs", ["update-ref", "-d", "refs/heads/old"]],
])("git goes on when a killed one has left %s.lock", async (name, args) => {
  const repo = newRepository(join(tempDir(), "it's a repo"));
  repo.git("branch", "old");
  const lock = leave(repo, name);
  const call = atCommonDir(await openRepository(repo.dir, GIT_ENVIRONMENT));
  await askGit(call, ...args);
  expect(fs.existsSync(lock)).toBe(false);
});

/** The answer of a git with tables while one of these locks is there. */
function gitWithTables(dir: string, ...locks: string[]): string {
  const isThere = locks.map((lock) => `[ -e "${lock}" ]`).join(" || ");
  const script = `#!/bin/sh\n${isThere} || exit 0\necho "fatal: cannot lock references" >&2; exit 128\n`;
  fs.writeFileSync(join(dir, "git"), script, { mode: 0o755 });
  return `${dir}${delimiter}${process.env["PATH"]}`;
}

test("git goes on when a killed one has left the lock of tables of refs, and waits for one that may be in use", async () => {
  const repo = newRepository(join(tempDir(), "repo"));
  repo.git("worktree", "add", "-q", join(tempDir(), "worktree"), "-b", "other");
  const locks = ["reftable/tables.list", "worktrees/worktree/reftable/tables.list"];
  const [common = "", own = ""] = locks.map((name) => leave(repo, name));
  const { commonDir, env } = await openRepository(repo.dir, GIT_ENVIRONMENT);
  vi.stubEnv("PATH", gitWithTables(tempDir(), common, own));
  onTestFinished(() => void vi.unstubAllEnvs());
  const cwd = join(commonDir, "worktrees", "worktree");
  await askGit({ cwd, gitDir: cwd, env }, "update-ref", "HEAD", "HEAD");
  expect([common, own].filter((lock) => fs.existsSync(lock))).toEqual([]);
  const young = leave(repo, "reftable/tables.list", 0);
  expect(dropLeftLock("fatal: cannot lock references", [commonDir])).toBeUndefined();
  expect(fs.existsSync(young)).toBe(true);
});

const [, tables] = waysToKeepRefs();

test.skipIf(tables === undefined)("with real tables of refs, too", async () => {
  const repo = newRepository(join(tempDir(), "repo"), ...(tables ?? []));
  const worktree = join(tempDir(), "worktree");
  repo.git("worktree", "add", "-q", worktree, "-b", "other");
  const { commonDir, env } = await openRepository(repo.dir, GIT_ENVIRONMENT);
  const gitDir = join(commonDir, "worktrees", "worktree");
  const common = leave(repo, "reftable/tables.list");
  await askGit(atCommonDir({ commonDir, prefix: "", env }), "update-ref", "refs/heads/x", "HEAD");
  const own = leave(repo, "worktrees/worktree/reftable/tables.list");
  await askGit({ cwd: worktree, gitDir, env }, "checkout", "--quiet", "--detach");
  expect([common, own].filter((lock) => fs.existsSync(lock))).toEqual([]);
});

onProc(
  "a lock stays while a git that may hold it runs, in whichever worktree; not for one elsewhere",
  async () => {
    const repo = newRepository(join(tempDir(), "repo"));
    const worktree = join(tempDir(), "worktree");
    repo.git("worktree", "add", "-q", worktree, "-b", "other");
    for (const cwd of [repo.dir, worktree, join(repo.dir, ".git", "refs")]) {
      const lock = leave(repo, "packed-refs");
      const git = await startGit(cwd);
      const seen = dropLeftLock(said(lock), []);
      expect(git.mayHave(seen), cwd).toBe(true);
      // One that began later cannot have it.
      const later = await startGit(cwd);
      expect(git.mayHave(dropLeftLock(said(lock), [], seen))).toBe(true);
      expect(later.mayHave(dropLeftLock(said(lock), [], seen))).toBe(false);
      expect(fs.existsSync(lock)).toBe(true);
      await git.end();
      await isDropped(lock, seen);
      await later.end();
    }
    const lock = leave(repo, "packed-refs");
    const told = await startGit(tempDir(), `--git-dir=${join(repo.dir, ".git")}`);
    expect(told.mayHave(dropLeftLock(said(lock), []))).toBe(true);
    await told.end();
    await startGit(tempDir());
    await startGit(repo.dir, "fsmonitor--daemon", "run");
    await isDropped(lock);
  },
);

test("a lock that is young or another one by now stays, and so does that of an index", async () => {
  const repo = newRepository(join(tempDir(), "repo"));
  const young = leave(repo, "packed-refs", 0);
  expect(dropLeftLock(said(young), [])).toBeUndefined();
  expect(fs.existsSync(young)).toBe(true);

  const lock = leave(repo, "packed-refs");
  const first = await startGit(repo.dir);
  const seen = dropLeftLock(said(lock), []);
  fs.renameSync(leave(repo, "other"), lock);
  const second = await startGit(repo.dir);
  await first.end();
  // It was seen first just now: the second git may have made it.
  expect(second.mayHave(dropLeftLock(said(lock), [], seen))).toBe(true);
  expect(fs.existsSync(lock)).toBe(true);

  for (const name of ["index", "HEAD", "config"]) {
    const other = leave(repo, name);
    expect(dropLeftLock(said(other), [])).toBeUndefined();
    expect(fs.existsSync(other)).toBe(true);
  }
});

test("a lock that a git has made in the place of one that was left is put back", () => {
  const lock = join(tempDir(), "packed-refs.lock");
  fs.writeFileSync(lock, "");
  const { ino: inode } = fs.statSync(lock);
  removeLock(lock, inode + 1, `${lock}.aside`);
  expect(fs.statSync(lock).ino).toBe(inode);
  removeLock(lock, inode, `${lock}.aside`);
  removeLock(lock, inode, `${lock}.aside`);
  expect(fs.readdirSync(dirname(lock))).toEqual([]);
});
