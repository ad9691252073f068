/** A short run of `npm run test:chaos`, and the controls: broken variants that it must catch. */
import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

const LAUNCHER = fileURLToPath(new URL("chaos.mjs", import.meta.url));
/** A longer walk has more time between two faults. */
const QUICKLY = ["--min-ms", "50", "--max-ms", "200"];
const SEED = process.env["MAILCHUTE_TEST_SEED"] ?? String(Math.floor(Math.random() * 2 ** 31));

function run(args: readonly string[]): Promise<{ code: number; stdout: string }> {
  return new Promise((resolve) => {
    const child = [LAUNCHER, "--seed", SEED, "--quiet", ...args];
    execFile(process.execPath, child, { timeout: 400_000 }, (error, stdout, stderr) => {
      resolve({ code: error === null ? 0 : 1, stdout: `${stdout}${stderr}` });
    });
  });
}

test(`two supervisors and four workers, killed, stopped, robbed of their lock and misled by their clocks, lose nothing and settle nothing twice (seed ${SEED})`, {
  timeout: 420_000,
}, async () => {
  const { code, stdout } = await run([
    "--tasks",
    "100",
    "--faults",
    "15",
    "--seconds",
    "5",
    ...QUICKLY,
  ]);
  expect(stdout).not.toContain("PROBLEM");
  const [, tasks, faults] = /^(\d+) tasks, (\d+) faults, 0 problems$/m.exec(stdout) ?? [];
  expect([Number(tasks), Number(faults) > 0], stdout).toEqual([100, true]);
  expect(code).toBe(0);
});

test(`a variant whose records are visible before they are whole is caught (seed ${SEED})`, {
  timeout: 420_000,
}, async () => {
  const broken = ["--broken", "result-in-place"];
  const { code, stdout } = await run([
    "--tasks",
    "60",
    "--faults",
    "8",
    "--seconds",
    "4",
    ...broken,
  ]);
  expect(stdout).toMatch(/PROBLEM: .*(?:half a record|not a whole JSON object)/);
  expect(code).toBe(1);
});
