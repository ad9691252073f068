/** Links to commits of submodules: each one that lands leads somewhere when the worktree of its run is gone. */
import { join } from "node:path";
import { expect, test } from "vitest";
import { lostLinks } from "../../src/git/lost-links.ts";
import { openRepository } from "../../src/git/repository.ts";
import { breakSources } from "../support/broken.ts";
import { newRepository, repositoryAt } from "../support/git-repository.ts";
import { tempDir } from "../support/temp-dir.ts";

const ALLOW = ["-c", "protocol.file.allow=always"];

test("a link counts as lost unless a person, a remote or the target has its commit", async () => {
  const dir = tempDir();
  const remote = newRepository(join(dir, "remote"));
  const repo = newRepository(join(dir, "repo"));
  repo.git(...ALLOW, "submodule", "--quiet", "add", remote.dir, "sub");
  const base = repo.commit({}, "with a submodule");
  const person = repositoryAt(join(repo.dir, "sub"));
  const worktree = join(dir, "worktree");
  repo.git("worktree", "add", "--quiet", worktree);
  const run = repositoryAt(worktree);
  run.git(...ALLOW, "submodule", "--quiet", "update", "--init");
  const inner = repositoryAt(join(worktree, "sub"));
  const shared = remote.commit({ a: "a" });
  inner.git(...ALLOW, "fetch", "--quiet");
  const commits = {
    ofRun: inner.commit({ b: "b" }),
    ofPerson: person.commit({ c: "c" }),
    shared,
    invented: "1".repeat(40),
  };
  const tipWith = (commit: string): string => {
    repo.git("update-index", "--cacheinfo", `160000,${commit},sub`);
    const tree = repo.git("write-tree");
    return repo.git("commit-tree", "-p", base, "-m", "link", tree);
  };
  const lostIn = async (find: typeof lostLinks, known: string[]): Promise<string[]> => {
    const repository = await openRepository(repo.dir);
    const lost = Object.entries(commits).map(async ([name, commit]) => {
      const found = await find(repository, { tip: tipWith(commit), known, worktree });
      expect(found).toEqual(found.map(() => ({ path: "sub", commit })));
      return found.map(() => name);
    });
    return (await Promise.all(lost)).flat();
  };
  expect(await lostIn(lostLinks, [base])).toEqual(["ofRun", "invented"]);
  expect(await lostIn(lostLinks, [base, tipWith(commits.invented)])).toEqual(["ofRun"]);
  const broken = await import(
    join(
      breakSources({ file: "git/lost-links.ts", from: '"--remotes": [', to: '"--all": [' }),
      "src/git/lost-links.ts",
    )
  );
  expect(await lostIn(broken.lostLinks, [base])).not.toContain("ofRun");
  repo.git("worktree", "remove", "--force", "--force", worktree);
  expect(await lostIn(lostLinks, [base])).toEqual(["ofRun", "shared", "invented"]);
});
