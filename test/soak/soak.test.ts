/** A short run of `npm run test:soak`, and whether its judge tells a leak from noise. */
import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { seededRandom } from "../support/seeded-random.ts";
import type { Sample } from "./figures.ts";
import { growthOf, slopeOf } from "./slope.ts";
import { judge } from "./soak.ts";

const LAUNCHER = fileURLToPath(new URL("soak.mjs", import.meta.url));

function run(args: readonly string[]): Promise<{ code: number; stdout: string }> {
  return new Promise((resolve) => {
    execFile(
      process.execPath,
      [LAUNCHER, ...args],
      { timeout: 400_000 },
      (error, stdout, stderr) => {
        resolve({ code: error === null ? 0 : 1, stdout: `${stdout}${stderr}` });
      },
    );
  });
}

test("a pool under a steady, mixed load holds no more descriptors, watches, memory and files after a while", {
  timeout: 420_000,
}, async () => {
  const { code, stdout } = await run(["--seconds", "8"]);
  expect(stdout).not.toContain("PROBLEM");
  expect(stdout).toMatch(/^supervisor: descriptors +\d/m);
  expect(stdout).toMatch(/^\d+ figures, \d+ samples, 0 problems$/m);
  expect(code).toBe(0);
});

const SEED = Number(process.env["MAILCHUTE_TEST_SEED"] ?? Math.floor(Math.random() * 2 ** 31));

function samplesOf(name: string, value: (seconds: number, noise: number) => number) {
  const random = seededRandom(SEED);
  return Array.from({ length: 240 }, (_, n) => {
    const sample: Sample = new Map([[name, value(n, random() * 2 - 1)]]);
    return { seconds: n, sample };
  });
}

test(`noise and outliers are no growth, a slow leak is (seed ${SEED})`, () => {
  const noisy = samplesOf(
    "workers: descriptors",
    (n, noise) => 50 + 4 * noise + (n % 60 === 0 ? 40 : 0),
  );
  const [flat] = judge(noisy, 240);
  expect(flat?.growth).toBeLessThan(flat?.allowed ?? 0);
  const leaking = samplesOf("workers: descriptors", (n, noise) => 50 + 4 * noise + n / 10);
  const [leak] = judge(leaking, 240);
  expect(leak?.growth).toBeGreaterThan(leak?.allowed ?? Number.POSITIVE_INFINITY);
});

test("the slope of a line is its slope, of nothing 0", () => {
  const line = Array.from({ length: 1000 }, (_, n) => ({ seconds: n, value: 3 * n + 7 }));
  expect(slopeOf(line)).toBeCloseTo(3);
  expect(growthOf(line)).toBeCloseTo(3 * 999);
  expect([slopeOf([]), growthOf([]), slopeOf(line.slice(0, 1))]).toEqual([0, 0, 0]);
});
