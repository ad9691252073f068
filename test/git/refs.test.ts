/** Refs that exclude each other are found before one of them is made. */
import { join } from "node:path";
import { expect, test } from "vitest";
import { makeRef, refuseClash } from "../../src/git/refs.ts";
import { openRepository } from "../../src/git/repository.ts";
import { newRepository } from "../support/git-repository.ts";
import { tempDir } from "../support/temp-dir.ts";

const CASES: readonly [there: string, wanted: string, hint: string][] = [
  ["refs/heads/mailchute", "refs/heads/mailchute/a", "git branch -m mailchute NAME"],
  ["refs/heads/release/1.0", "refs/heads/release", "git branch -m release/1.0 NAME"],
  ["refs/heads/a/b", "refs/heads/a/b/c/d", "git branch -m a/b NAME"],
  ["refs/mailchute/a", "refs/mailchute/a/base", "git update-ref -d refs/mailchute/a"],
];

test.each(CASES)("beside %s there can be no %s, and the error says what to do", async (...one) => {
  const [there, wanted, hint] = one;
  const repo = newRepository(join(tempDir(), "repo"));
  const commit = repo.git("rev-parse", "HEAD");
  const repository = await openRepository(repo.dir);
  await refuseClash(repository, wanted);
  for (const state of ["loose", "packed"]) {
    if (state === "loose") repo.git("update-ref", there, commit);
    else repo.git("pack-refs", "--all");
    const error = {
      message: expect.stringContaining("cannot be made beside") as string,
      hint: expect.stringContaining(hint) as string,
    };
    await expect(refuseClash(repository, wanted), state).rejects.toMatchObject(error);
    await expect(makeRef(repository, { name: wanted, commit }), state).rejects.toMatchObject(error);
  }
});
