/** The id of a file: that which git gives it, while other work goes on. */
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { hashOfFile } from "../../src/git/hash-file.ts";
import { tempDir } from "../support/temp-dir.ts";

test("a large file has the id that git gives it, and others have their turn while it is read", async () => {
  const path = join(tempDir(), "large");
  fs.writeFileSync(path, "begins\n");
  fs.truncateSync(path, 160 << 20);
  let turns = 0;
  const count = (): void => {
    turns++;
    later = setImmediate(count);
  };
  let later = setImmediate(count);
  const oid = await hashOfFile(path, { mode: "100644" }, "sha1");
  clearImmediate(later);
  expect(oid).toBe(execFileSync("git", ["hash-object", path], { encoding: "utf8" }).trim());
  expect(turns).toBeGreaterThan(3);
});
