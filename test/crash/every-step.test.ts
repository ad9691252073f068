/** A sample of `npm run test:crash`, chosen by seed, and the controls: broken variants that it must catch. */
import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { tempDir } from "../support/temp-dir.ts";
import { WALKS_SEED } from "../support/walks.ts";

const LAUNCHER = fileURLToPath(new URL("every-step.mjs", import.meta.url));

const SEED = String(WALKS_SEED);
const LOSES_ITS_TREE = fileURLToPath(
  new URL("../fixtures/programs/loses-its-tree.mjs", import.meta.url),
);

function run(args: readonly string[]): Promise<{ code: number; stdout: string }> {
  return new Promise((resolve) => {
    execFile(
      process.execPath,
      [LAUNCHER, ...args],
      { timeout: 560_000 },
      (error, stdout, stderr) => {
        resolve({ code: error === null ? 0 : 1, stdout: `${stdout}${stderr}` });
      },
    );
  });
}

test("kills, pauses and errors at steps chosen by seed lose nothing and settle nothing twice", {
  timeout: 600_000,
}, async () => {
  // The same sample every time; `npm run test:crash` walks all of it, and other seeds search on.
  const seed = process.env["MAILCHUTE_TEST_SEED"] ?? "1";
  const operations = ["submit", "complete-power", "fail", "retry-dead-letter", "quarantine"];
  const { code, stdout } = await run([
    "--seed",
    seed,
    "--sample",
    "2",
    "--only",
    "kill,zombie,error,compound",
    ...operations,
  ]);
  expect(stdout, `again with --seed ${seed}`).not.toContain("FAILED");
  expect(stdout).toMatch(/^\d+ passed, 0 failed$/m);
  // Of each kind: some cases end before their fault.
  for (const kind of ["kill", "zombie", "error"])
    expect(Number(new RegExp(`^${kind}: (\\d+) passed`, "m").exec(stdout)?.[1])).toBeGreaterThan(0);
  expect(code).toBe(0);
});

test("variants that submit, settle or reclaim wrongly are caught", {
  timeout: 600_000,
}, async () => {
  const args = ["--seed", SEED, "--only", "controls", "--sample", "1", "submit"];
  const { code, stdout } = await run(args);
  expect(stdout.match(/^caught: /gm)).toHaveLength(1);
  expect(stdout).not.toContain("FAILED");
  expect(code).toBe(0);
});

test("a real worker process, killed in its main thread or in the thread that beats, loses nothing and settles nothing twice", {
  timeout: 600_000,
}, async () => {
  // `npm run test:crash -- --only worker` kills at every call.
  const { code, stdout } = await run(["--seed", "1", "--only", "worker", "--sample", "2"]);
  expect(stdout).not.toContain("FAILED");
  expect(Number(/^worker: (\d+) passed/m.exec(stdout)?.[1])).toBeGreaterThanOrEqual(1);
  expect(code).toBe(0);
});

test("the machine ends when a supervisor has lost its tree whose worker lives in the same process", async () => {
  const lost = promisify(execFile)(process.execPath, [LOSES_ITS_TREE, tempDir()], {
    timeout: 150_000,
  });
  expect((await lost).stdout).toBe("lock-lost\n");
});

test("a supervisor killed between claim and acknowledgement of each command: in effect once, and acknowledged", {
  timeout: 600_000,
}, async () => {
  // `npm run test:crash -- --only kill command` kills at every call in between. How many calls there are hangs on the moment.
  const args = ["--few", "--seed", SEED, "--sample", "6", "--only", "kill", "command"];
  const { code, stdout } = await run(args);
  expect(stdout).not.toContain("FAILED");
  expect(Number(/^kill: (\d+) passed/m.exec(stdout)?.[1])).toBeGreaterThanOrEqual(3);
  expect(code).toBe(0);
});

test("a supervisor killed while it carries over what a node settled as: the changes of the plan are there whole or not at all", {
  timeout: 600_000,
}, async () => {
  // `npm run test:crash -- --only kill roadmap kv-put` kills at every call.
  const few = ["--few", "--seed", SEED, "--sample", "3", "--only", "kill"];
  const args = [...few, "roadmap-apply", "roadmap-escalate"];
  const { code, stdout } = await run(args);
  expect(stdout).not.toContain("FAILED");
  expect(Number(/^kill: (\d+) passed/m.exec(stdout)?.[1])).toBeGreaterThanOrEqual(1);
  expect(code).toBe(0);
});
