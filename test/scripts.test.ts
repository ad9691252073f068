/** The named scripts of package.json: each finds the tests that it names. */
import { execFileSync, spawnSync } from "node:child_process";
import fs from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";

const root = fileURLToPath(new URL("..", import.meta.url));
const { scripts } = JSON.parse(fs.readFileSync(`${root}package.json`, "utf8")) as {
  scripts: Record<string, string>;
};

interface Run {
  projects: string[];
  /** Parts of paths: a file belongs to the run when its path holds one of them. */
  filters: string[];
}

/** The runs of vitest in a script. Without a project, a run has all of them. */
function runsIn(script: string): Run[] {
  return script.split("&&").flatMap((command) => {
    const words = command.trim().split(/\s+/);
    const at = words.indexOf("vitest");
    if (at === -1) return [];
    const run: Run = { projects: [], filters: [] };
    for (let i = at + 2; i < words.length; i++) {
      const word = words[i] ?? "";
      if (word === "--project") run.projects.push(words[++i] ?? "");
      else if (word.startsWith("test/")) run.filters.push(word);
    }
    return [run];
  });
}

const listed = JSON.parse(
  execFileSync("npx", ["vitest", "list", "--filesOnly", "--json"], {
    cwd: root,
    encoding: "utf8",
    stdio: ["ignore", "pipe", "ignore"],
  }),
) as { file: string; projectName: string }[];

const named = Object.entries(scripts).flatMap(([name, script]) =>
  runsIn(script).map((run, at) => [`${name} (${at + 1})`, run] as const),
);

it("there are runs of vitest in the scripts", () => {
  expect(named.length).toBeGreaterThan(15);
});

it.each(named)("%s finds a test for each of its paths", (_name, { projects, filters }) => {
  const files = listed
    .filter(({ projectName }) => projects.length === 0 || projects.includes(projectName))
    .map(({ file }) => file.slice(root.length));
  expect(files).not.toEqual([]);
  for (const filter of filters)
    expect(
      files.some((file) => file.includes(filter)),
      filter,
    ).toBe(true);
});

it.each([
  "demo-agents",
  "demo-night",
  "measure-house",
  "mock-api",
  "reliability",
  "sample-prose",
  "test-agents",
  "wave0",
])("%s explains itself with --help, and refuses what it does not know", (name) => {
  const run = (flag: string) =>
    spawnSync(process.execPath, [`scripts/${name}.mjs`, flag], { cwd: root, encoding: "utf8" });
  const { status, stdout, stderr } = run("--help");
  expect([status, stderr]).toEqual([0, ""]);
  expect(stdout.length).toBeGreaterThan(60);
  const wrong = run("--nope");
  expect(wrong.status).toBe(2);
  expect(wrong.stderr).toMatch(/^Unknown option '--nope'.*\n$/);
});
