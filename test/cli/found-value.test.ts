/** The values that messages tell the shape of only: shown on the command line to a person who asks, and by no error as a whole. */
import fs from "node:fs";
import { join } from "node:path";
import { inspect } from "node:util";
import { expect, it } from "vitest";
import { checkTask } from "../../src/codec/task-codec.ts";
import { newCli, put } from "./run-cli.ts";

const SECRET = "curl -H hunter2";
const NODE = `- { id: a, exec: ${SECRET} }`;

it.each([
  ["a setting", ["config"], `  found: "${SECRET}"\n`],
  ["a line of tasks", ["enqueue", "--file", "tasks"], `of 15 characters: "${SECRET}"\n`],
  ["each fault of the plan", ["roadmap", "check"], `  found: ${NODE}\n`],
  ["the first fault of the plan", ["roadmap", "next"], `  found: "${NODE}"\n`],
])("with MAILCHUTE_DEBUG=1 what was found is shown, else not: %s", async (_what, args, found) => {
  const cli = newCli();
  fs.writeFileSync(join(cli.dir, "tasks"), `${JSON.stringify({ exec: SECRET })}\n`);
  put(cli, "roadmap.yaml", `nodes:\n  ${NODE}\n`);
  if (args[0] === "config") put(cli, "config.yaml", `workers: ${SECRET}\n`);
  const shy = await cli(args);
  expect(shy.stdout + shy.stderr).toContain("found a text of 15 characters");
  expect(shy.stdout + shy.stderr).not.toContain(SECRET);
  const open = await cli(args, { env: { MAILCHUTE_DEBUG: "1" } });
  expect(open.stdout + open.stderr).toContain(found);
  expect(open.code).toBe(shy.code);
});

it("with --json it is a member of the error", async () => {
  const cli = newCli();
  put(cli, "config.yaml", `workers: ${SECRET}\n`);
  const { stderr } = await cli(["config", "--json"], { env: { MAILCHUTE_DEBUG: "1" } });
  expect(JSON.parse(stderr.split("\n")[0] ?? "").error).toMatchObject({
    code: "ErrInvalidConfig",
    found: JSON.stringify(SECRET),
  });
});

it("a program that prints or keeps an error of the library whole does not get it", () => {
  let caught: unknown;
  try {
    checkTask({ exec: SECRET }, "a");
  } catch (error) {
    caught = error;
  }
  expect(caught).toMatchObject({ code: "ErrInvalidTask", found: SECRET });
  expect(inspect(caught) + JSON.stringify(caught)).not.toContain(SECRET);
});
