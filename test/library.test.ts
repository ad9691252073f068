/** The library as it is built: another program runs a pool with it. */
import { execFileSync } from "node:child_process";
import { expect, test } from "vitest";
import { newCli, put } from "./cli/run-cli.ts";
import { programPath } from "./support/programs.ts";

test("a program that imports the library runs a pool with worker processes", () => {
  const cli = newCli();
  put(cli, "mailbox/inbox/a.json", { exec: ["true"] });
  const stdout = execFileSync(process.execPath, [
    programPath("library-pool.mjs"),
    `${cli.dir}/state`,
  ]);
  expect(JSON.parse(stdout.toString())).toMatchObject({ completed: 1, endedBy: "drained" });
});
