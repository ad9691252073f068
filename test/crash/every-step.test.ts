/** A sample of `npm run test:crash`, chosen by seed, and the controls: broken variants that it must catch. */
import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

const LAUNCHER = fileURLToPath(new URL("every-step.mjs", import.meta.url));

function run(args: readonly string[]): Promise<{ code: number; stdout: string }> {
  return new Promise((resolve) => {
    execFile(
      process.execPath,
      [LAUNCHER, ...args],
      { timeout: 230_000 },
      (error, stdout, stderr) => {
        resolve({ code: error === null ? 0 : 1, stdout: `${stdout}${stderr}` });
      },
    );
  });
}

test("kills, pauses and errors at steps chosen by seed lose nothing and settle nothing twice", {
  timeout: 240_000,
}, async () => {
  // The same sample every time; `npm run test:crash` walks all of it, and other seeds search on.
  const seed = process.env["MAILCHUTE_TEST_SEED"] ?? "1";
  const operations = ["submit", "complete-power", "fail", "retry-dead-letter", "quarantine"];
  const { code, stdout } = await run([
    "--seed",
    seed,
    "--sample",
    "4",
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
  timeout: 240_000,
}, async () => {
  const args = ["--seed", "1", "--only", "controls", "--sample", "2", "submit"];
  const { code, stdout } = await run(args);
  expect(stdout.match(/^caught: /gm)).toHaveLength(2);
  expect(stdout).not.toContain("FAILED");
  expect(code).toBe(0);
});

test("a supervisor killed between claim and acknowledgement of each command: in effect once, and acknowledged", {
  timeout: 240_000,
}, async () => {
  // `npm run test:crash -- --only kill command` kills at every call in between.
  const args = ["--few", "--seed", "1", "--only", "kill", "command"];
  const { code, stdout } = await run(args);
  expect(stdout).not.toContain("FAILED");
  expect(Number(/^kill: (\d+) passed/m.exec(stdout)?.[1])).toBeGreaterThanOrEqual(24);
  expect(code).toBe(0);
});

test("a supervisor killed while it carries over what a node settled as: the changes of the plan are there whole or not at all", {
  timeout: 240_000,
}, async () => {
  // `npm run test:crash -- --only kill roadmap kv-put` kills at every call.
  const args = ["--few", "--seed", "1", "--only", "kill", "roadmap-apply", "roadmap-escalate"];
  const { code, stdout } = await run(args);
  expect(stdout).not.toContain("FAILED");
  expect(Number(/^kill: (\d+) passed/m.exec(stdout)?.[1])).toBeGreaterThanOrEqual(6);
  expect(code).toBe(0);
});
