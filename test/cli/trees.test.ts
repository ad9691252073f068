/** Several state trees have names, which work in every command and are shown together. */
import fs from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { EXIT } from "../../src/cli/shell/exit-codes.ts";
import { newCli } from "./run-cli.ts";

async function withTwo() {
  const cli = newCli();
  const env = { XDG_CONFIG_HOME: join(cli.dir, "config") };
  const run = async (...args: string[]) => cli(args, { env });
  for (const dir of ["one", "two/state"]) await run("init", dir);
  for (const [name, dir] of [
    ["work", "one"],
    ["shop", "two/state"],
  ] as const)
    expect(await run("trees", "add", name, dir)).toMatchObject({ code: 0, stderr: "" });
  return { dir: cli.dir, links: join(cli.dir, "config/mailchute/trees"), run };
}

it("a name stands for its tree before and after the command, and in the environment", async () => {
  const cli = newCli();
  const env = { XDG_CONFIG_HOME: join(cli.dir, "config") };
  await cli(["init"], { env });
  expect((await cli(["trees", "add", "work"], { env })).stdout).toBe(`work  ${cli.dir}/state\n`);
  fs.mkdirSync(join(cli.dir, "elsewhere"));
  const from = { cwd: "elsewhere", env };
  for (const args of [
    ["-s", "work", "enqueue", "--id", "a", "--", "true"],
    ["enqueue", "--state", "work", "--id", "b", "--", "true"],
  ])
    expect(await cli(args, from)).toMatchObject({ code: 0 });
  const named = { ...from, env: { ...env, MAILCHUTE_STATE: "work" } };
  expect(await cli(["enqueue", "--id", "c", "--", "true"], named)).toMatchObject({ code: 0 });
  expect(fs.readdirSync(cli.inbox).toSorted()).toEqual(["a.json", "b.json", "c.json"]);
  expect(fs.readdirSync(join(cli.dir, "elsewhere"))).toEqual([]);
});

it("a state tree here comes before the name of another one, a directory that is none does not", async () => {
  const { dir, run } = await withTwo();
  fs.mkdirSync(join(dir, "work"));
  const treeOf = async (name: string): Promise<string> =>
    JSON.parse((await run("-s", name, "status", "--json")).stdout).state_dir;
  expect(await treeOf("work")).toBe(join(dir, "one"));
  await run("init", "work");
  expect(await treeOf("work")).toBe(join(dir, "work"));
});

it("status shows all of them, also one that has gone", async () => {
  const { dir, links, run } = await withTwo();
  await run("-s", "work", "enqueue", "--", "true");
  fs.symlinkSync("/nowhere/state", join(links, "gone"));
  fs.writeFileSync(join(links, "rubbish"), "no link");
  const { code, stdout } = await run("status", "--all");
  expect(code).toBe(EXIT.ok);
  expect(stdout.split("\n").map((line) => line.replaceAll(/ +/g, " "))).toEqual([
    "NAME SUPERVISOR WAITING READY RUNNING DONE FAILED",
    "gone - - - - - -",
    " no state tree is at /nowhere/state",
    "shop none 0 0 0 0 0",
    "work none 1 0 0 0 0",
    " no supervisor runs on this state tree",
    "",
  ]);
  const { trees } = JSON.parse((await run("status", "--all", "--json")).stdout);
  expect(trees).toMatchObject([
    { name: "gone", snapshot: null, fault: "no state tree is at /nowhere/state" },
    { name: "shop", dir: join(dir, "two/state"), snapshot: { counts: { running: 0 } } },
    { name: "work", snapshot: { counts: { waiting: { count: 1 } } } },
  ]);
});

it("names are links that ln makes, too; a wrong one says what to do", async () => {
  const { dir, links, run } = await withTwo();
  fs.symlinkSync(join(dir, "one"), join(links, "by-hand"));
  expect((await run("trees", "ls")).stdout).toBe(
    `NAME     TREE\nby-hand  ${dir}/one\nshop     ${dir}/two/state\nwork     ${dir}/one\n`,
  );
  expect(await run("trees", "remove", "by-hand")).toMatchObject({ code: 0 });
  expect(await run("trees", "add", "shop", "two/state")).toMatchObject({ code: 0 });
  for (const [args, code, text] of [
    [["add", "work", "two/state"], EXIT.conflict, "already the name of another tree"],
    [["add", "new", "two"], EXIT.notFound, `there is one below it: ${dir}/two/state`],
    [["add", "a/b", "one"], EXIT.usage, "cannot be the name of a tree"],
    [["remove", "shpo"], EXIT.notFound, 'did you mean "shop"?'],
    [["remove", "../trees"], EXIT.notFound, "no tree has the name"],
    [["ls", "work"], EXIT.usage, "takes no name"],
    [["add"], EXIT.usage, "needs a name"],
  ] as const) {
    const { code: is, stderr } = await run("trees", ...args);
    expect(stderr).toContain(text);
    expect(is).toBe(code);
  }
  expect((await run("status", "-s", "wrk")).stderr).toContain("did you mean the tree named work?");
  expect(fs.readdirSync(links).toSorted()).toEqual(["shop", "work"]);
  for (const name of ["shop", "work"]) await run("trees", "remove", name);
  const { code, stderr } = await run("status", "--all");
  expect(code).toBe(EXIT.notFound);
  expect(stderr).toContain("`mailchute trees add NAME [DIR]`");
});
