/** What the service for tests runs is what the repository has: its scripts, and each supported Node. It runs elsewhere, so only its text is checked. */
import fs from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { parse } from "yaml";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const read = (path: string): string => fs.readFileSync(join(ROOT, path), "utf8");

interface Job {
  "runs-on": string;
  "timeout-minutes": number;
  "continue-on-error"?: boolean;
  strategy?: { matrix: { node: number[] } };
  steps: { uses?: string; run?: string }[];
}

const { jobs, permissions } = parse(read(".github/workflows/tests.yml")) as {
  jobs: Record<string, Job>;
  permissions: unknown;
};

test("Linux and macOS run the tests on each Node of test:nodes, and only macOS may fail", () => {
  const [, versions = ""] = /VERSIONS = (\[.*?\])/.exec(read("scripts/nodes.mjs")) ?? [];
  for (const name of ["linux", "macos"])
    expect(jobs[name]?.strategy?.matrix.node.map(String)).toEqual(JSON.parse(versions));
  const mayFail = Object.keys(jobs).filter((name) => jobs[name]?.["continue-on-error"] === true);
  expect(mayFail).toEqual(["macos"]);
});

test("its steps are scripts of package.json, with few rights and an end", () => {
  const { scripts } = JSON.parse(read("package.json")) as { scripts: Record<string, string> };
  const runs = Object.values(jobs).flatMap(({ steps }) => steps.flatMap(({ run = "" }) => run));
  const named = runs.flatMap((run) => /^npm (?:run )?(test\S*|check\S*)$/.exec(run)?.[1] ?? []);
  expect(new Set(named)).toEqual(new Set(["check:static", "test", "test:searches"]));
  for (const name of named) expect(scripts).toHaveProperty([name]);
  expect(permissions).toEqual({ contents: "read" });
  for (const job of Object.values(jobs)) expect(job["timeout-minutes"]).toBeGreaterThan(0);
});
