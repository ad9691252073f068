/** The library as it is built: another program runs a pool with it. */
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import { fileURLToPath } from "node:url";
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

test("a program that imports the library takes commands from enqueue to acknowledgement", () => {
  const cli = newCli();
  const control = `${cli.dir}/state/control`;
  const stdout = execFileSync(process.execPath, [programPath("library-commands.mjs"), control]);
  const { steps, claimed, none, acknowledgements } = JSON.parse(stdout.toString());
  // Waiting, claimed, acknowledged: one of them well.
  expect(steps).toEqual([
    [2, 0, 0, 0],
    [0, 2, 0, 0],
    [0, 0, 1, 1],
  ]);
  expect(claimed).toEqual([
    ["pause", {}],
    ["set-workers", { workers: 3 }],
  ]);
  expect(none).toBeNull();
  expect(acknowledgements).toMatchObject([
    { status: "completed", command: "pause", result: { paused: true } },
    { status: "failed", command: "set-workers", args: { workers: 3 }, error: "no" },
  ]);
});

test("importing the package starts nothing, and reads neither YAML nor the supervisor", () => {
  const dist = fileURLToPath(new URL("../dist/", import.meta.url));
  const read = new Set(["index.js"]);
  for (const file of read)
    for (const [, path = ""] of fs
      .readFileSync(`${dist}${file}`, "utf8")
      .matchAll(/^(?:import|export) .*?"\.\/([^"]+)";$/gm))
      read.add(file.startsWith("chunks/") ? `chunks/${path}` : path);
  expect(read.size).toBeGreaterThan(5);
  const code = [...read].map((file) => fs.readFileSync(`${dist}${file}`, "utf8")).join("\n");
  // Most of it is the check of tasks.
  expect(code.length).toBeLessThan(527_000);
  expect(code).not.toMatch(/class (?:Supervisor|Worker|Scalar)\b/);
  const program = `await import(${JSON.stringify(`${dist}index.js`)}); console.log(process.getActiveResourcesInfo().join())`;
  const flags = ["--input-type=module", "-e", program];
  const active = execFileSync(process.execPath, flags, { encoding: "utf8" });
  expect(active).not.toMatch(/Process|Timeout|Immediate|TCP|UDP|FSEvent|MessagePort/);
});

test("the build holds the empty module that an idle worker imports", () => {
  const path = fileURLToPath(new URL("../dist/agents/nothing.js", import.meta.url));
  expect(fs.readFileSync(path, "utf8").trim()).toBe("export {};");
});
