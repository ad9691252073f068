/** docs/how-to/several-machines.md, with a real server on its usual port. */
import fs from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { putProgram, runPage } from "../../../support/newcomer.ts";
import { tempDir } from "../../../support/temp-dir.ts";
import { CACHE, findServer } from "./found.ts";

test("docs/how-to/several-machines.md does what it says", async () => {
  const dir = tempDir();
  const server = findServer();
  expect(server).toBeDefined();
  putProgram(dir, "nats-server", `exec '${server}' "$@"\n`);
  for (const name of ["box", "laptop"]) {
    fs.mkdirSync(join(dir, name));
    fs.symlinkSync(join(CACHE, "node_modules"), join(dir, name, "node_modules"));
  }
  const page = new URL("../../../../docs/how-to/several-machines.md", import.meta.url);
  await runPage(dir, fs.readFileSync(page, "utf8"));
});
