/** Repositories inside a worktree: their settings were written by a run, so no program that they name is started. */
import fs from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { openRepository } from "../../src/git/repository.ts";
import { takeSnapshot } from "../../src/git/snapshot.ts";
import { newRepository, repositoryAt, type TestRepository } from "../support/git-repository.ts";
import { tempDir } from "../support/temp-dir.ts";

/** A repository with a submodule that has a remote. */
function withSubmodule(dir: string): { repo: TestRepository; sub: TestRepository } {
  const remote = newRepository(join(dir, "remote"));
  const repo = newRepository(join(dir, "repo"));
  const allow = ["-c", "protocol.file.allow=always"];
  repo.git(...allow, "submodule", "--quiet", "add", remote.dir, "sub");
  repo.commit({}, "with a submodule");
  return { repo, sub: repositoryAt(join(repo.dir, "sub")) };
}

async function missingIn(repo: TestRepository): Promise<readonly string[]> {
  const worktree = { path: repo.dir, gitDir: join(repo.dir, ".git"), branch: "main" };
  const found = await openRepository(repo.dir);
  const { missing } = await takeSnapshot(found, worktree, {});
  // Worktrees of ours never have theirs inside.
  return missing.filter((one) => !one.startsWith(".git "));
}

const OWN = ["sub is a repository of its own"];

test("a submodule that holds only what its remote has is no work; everything else in it is", async () => {
  const { repo, sub } = withSubmodule(tempDir());
  expect(await missingIn(repo)).toEqual([]);
  const cases: [what: string, act: () => void, undo: () => void][] = [
    [
      "a new file",
      () => fs.writeFileSync(join(sub.dir, "new"), "x"),
      () => fs.rmSync(join(sub.dir, "new")),
    ],
    [
      "an ignored file",
      () => fs.writeFileSync(join(sub.dir, "x.log"), "x"),
      () => fs.rmSync(join(sub.dir, "x.log")),
    ],
    [
      "a change under a mark",
      () => {
        sub.git("update-index", "--assume-unchanged", "README.md");
        fs.writeFileSync(join(sub.dir, "README.md"), "other\n");
      },
      () => fs.writeFileSync(join(sub.dir, "README.md"), "hello\n"),
    ],
    [
      "a repository deeper inside",
      () => newRepository(join(sub.dir, "deeper")),
      () => fs.rmSync(join(sub.dir, "deeper"), { recursive: true }),
    ],
    [
      "a commit",
      () => {
        sub.git("checkout", "--quiet", "-b", "mine");
        sub.commit({ more: "x" });
      },
      () => {},
    ],
  ];
  for (const [what, act, undo] of cases) {
    act();
    expect(await missingIn(repo), what).toEqual(OWN);
    undo();
    if (what !== "a commit") expect(await missingIn(repo), `after ${what}`).toEqual([]);
  }
});

test.each(["a submodule", "a repository that a run made"])(
  "%s names a filter: it does not run",
  async (kind) => {
    const dir = tempDir();
    const { repo, sub } = withSubmodule(dir);
    const inner = kind === "a submodule" ? sub : newRepository(join(repo.dir, "inner"));
    const ran = join(dir, "ran");
    const program = join(dir, "program");
    fs.writeFileSync(program, `#!/bin/sh\necho "$PWD" >> ${ran}\ncat\n`, { mode: 0o755 });
    inner.git("config", "filter.e.clean", program);
    inner.git("config", "core.fsmonitor", program);
    fs.writeFileSync(join(inner.dir, ".gitattributes"), "* filter=e\n");
    // Another time than in its index, so that git would read the file anew.
    fs.utimesSync(join(inner.dir, "README.md"), 1, 1);
    const path = inner === sub ? "sub" : "inner";
    expect(await missingIn(repo)).toEqual([`${path} is a repository of its own`]);
    expect(fs.existsSync(ran)).toBe(false);
  },
);
