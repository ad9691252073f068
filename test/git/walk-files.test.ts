/** The walk over the files of a worktree: others have their turn, however many files there are. */
import fs from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { walkFiles } from "../../src/git/walk-files.ts";
import { breakSources } from "../support/broken.ts";
import { tempDir } from "../support/temp-dir.ts";

const FILES = 6000;

/** How often others had their turn while it walked. @throws when it did not find all files */
async function turnsOf(walk: typeof walkFiles, root: string): Promise<number> {
  let turns = 0;
  const count = (): void => {
    turns++;
    next = setImmediate(count);
  };
  let next = setImmediate(count);
  const { files } = await walk(root, new Set());
  clearImmediate(next);
  expect(files.size).toBe(FILES);
  return turns;
}

test("a walk over many files lets others work", async () => {
  const root = tempDir();
  for (let n = 0; n < 30; n++) fs.mkdirSync(join(root, `d${n}`));
  for (let n = 0; n < FILES; n++)
    fs.writeFileSync(join(root, n % 2 === 0 ? `f${n}` : `d${n % 30}/f${n}`), "");
  expect(await turnsOf(walkFiles, root)).toBeGreaterThan(0);
  const change = { file: "git/walk-files.ts", from: "performance.now() > endMs", to: "false" };
  const broken = (await import(join(breakSources(change), "src/git/walk-files.ts"))) as {
    walkFiles: typeof walkFiles;
  };
  expect(await turnsOf(broken.walkFiles, root)).toBe(0);
});
