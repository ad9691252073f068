/** One rule for all verbs: an id or a name that nothing has ends with exit code 3, says so, and has no effect. */
import fs from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { REGISTRY } from "../../src/cli/shell/registry.ts";
import { newRepository } from "../support/git-repository.ts";
import { newCli } from "./run-cli.ts";

/** For each verb its words with the unknown `nope`. */
const UNKNOWN: Readonly<Record<string, readonly string[]>> = {
  show: ["nope"],
  why: ["nope"],
  logs: ["nope"],
  wait: ["nope"],
  retry: ["nope"],
  edit: ["nope --priority 3"],
  urgent: ["nope"],
  attach: ["nope"],
  continue: ["nope text"],
  say: ["nope text"],
  interrupt: ["nope", "nope text"],
  cancel: ["nope", "nope --requeue", "nope --wait", "nope other", "nope --json"],
  control: ["cancel --node nope"],
  resume: ["--agent nope"],
  answer: ["nope text"],
  review: ["nope"],
  land: ["nope"],
  prove: ["nope"],
  reject: ["nope text"],
  rescue: ["nope"],
  worktrees: ["clean nope"],
  release: ["nope"],
  archive: ["nope"],
  agents: ["why nope"],
  kv: ["get nope key"],
  schedule: ["show nope", "next nope", "run nope", "pause nope", "resume nope"],
  roadmap: ["show nope", "reset nope"],
  node: ["set-status nope done", "update nope --title x"],
  dep: ["add nope x", "remove nope x"],
  trees: ["remove nope"],
};
/** These take no id of a thing that must exist. A name of the settings (an agent, a group, a limit) is another matter. */
const WITHOUT =
  "init run worker bridge cluster demo enqueue list status top web ls cost report stats metrics notify ask spawn mcp watch pause set-workers group limit replan stop chat health service doctor recover clean config schema completion help";
/** They filter what was written: a task, a thread or a reader may have been removed, or may come later. */
const FILTERS = "events messages mail";

test("every verb is in the table of this test", () => {
  const known = [...Object.keys(UNKNOWN), ...WITHOUT.split(" "), ...FILTERS.split(" ")];
  expect(known.sort()).toEqual(Object.keys(REGISTRY).sort());
});

test("an unknown id ends with exit code 3 and has no effect", async () => {
  const cli = newCli();
  await cli(["init", "state", "--json"]);
  newRepository(cli.dir);
  const filesIn = (): string[] =>
    fs.readdirSync(join(cli.dir, "state"), { recursive: true }).map(String).sort();
  const before = filesIn();
  const cases = Object.entries(UNKNOWN).flatMap(([verb, all]) =>
    all.map((words) => [verb, ...words.split(" ")]),
  );
  const faults: string[] = [];
  const next = async (): Promise<void> => {
    for (let words = cases.shift(); words !== undefined; words = cases.shift()) {
      const { code, stdout, stderr } = await cli(words);
      if (code !== 3 || (!`${stdout}${stderr}`.includes("nope") && words[0] !== "rescue"))
        faults.push(`${words.join(" ")}: ${code}, ${stdout}${stderr}`);
    }
  };
  await Promise.all([next(), next(), next()]);
  expect(faults).toEqual([]);
  expect(filesIn().filter((file) => !before.includes(file))).toEqual([]);
});

test("of several ids the known ones are cancelled, and the unknown one is named", async () => {
  const cli = newCli();
  await cli(["init", "state"]);
  for (const id of ["a", "b"]) await cli(["enqueue", "--id", id, "--", "true"]);
  const { code, stdout } = await cli(["cancel", "a", "nope", "b", "--json"]);
  expect(code).toBe(3);
  const { sent, refused } = JSON.parse(stdout);
  expect(sent.map((one: { args: { node: string } }) => one.args.node)).toEqual(["a", "b"]);
  expect(refused).toMatchObject([{ args: { node: "nope" }, error: { code: "ErrTaskNotFound" } }]);
  // A node of the plan has no task before it starts.
  const plan = "nodes:\n  - { id: later, exec: [echo, later], dependencies: [a] }\n";
  fs.writeFileSync(join(cli.dir, "state", "roadmap.yaml"), plan);
  expect(await cli(["cancel", "later"])).toMatchObject({ code: 0 });
});
