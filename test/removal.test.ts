/**
 * Each part can be deleted: its folder, its lines in the lists of parts, its verbs. What is left compiles, and still runs a dropped file.
 * Each run tries some of the parts, `npm run test:removal` all of them.
 */
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { tempDir } from "./support/temp-dir.ts";
import { sampleOf } from "./support/walks.ts";

const ROOT = fileURLToPath(new URL("../", import.meta.url));
const VERBS = "src/cli/shell/registry.ts";
const PARTS = fs.readdirSync(join(ROOT, "src", "parts"));

/** A copy of what the build needs, with the packages of the original. */
function copyProject(): string {
  const copy = tempDir();
  for (const name of ["src", "scripts", "bin", "templates", "package.json"])
    fs.cpSync(join(ROOT, name), join(copy, name), { recursive: true });
  for (const name of ["tsconfig.json", "tsconfig.build.json"])
    fs.copyFileSync(join(ROOT, name), join(copy, name));
  fs.symlinkSync(join(ROOT, "node_modules"), join(copy, "node_modules"));
  return copy;
}

/** Deletes the folder of a part, and what names it. @returns how many lines and entries went */
function removePart(project: string, part: string): number {
  fs.rmSync(join(project, "src", "parts", part), { recursive: true });
  const lists = fs.readdirSync(join(project, "src", "app")).map((name) => `src/app/${name}`);
  return removeVerbs(project, part) + lists.reduce((sum, p) => sum + unlist(project, p, part), 0);
}

/** The entry of each verb that names it. */
function removeVerbs(project: string, part: string): number {
  const path = join(project, VERBS);
  const text = fs.readFileSync(path, "utf8");
  // An entry is all on one line, or ends with a line of its own.
  const entries = text.match(/^ {2}"?[\w-]+"?: \{(?:.*\},|[^}]*^ {2}\},)$/gm) ?? [];
  const named = entries.filter((entry) => entry.includes(`/parts/${part}/`));
  const left = named.reduce((rest, entry) => rest.replace(`${entry}\n`, ""), text);
  fs.writeFileSync(path, left);
  return named.length;
}

/** What a list of parts imports of it, and where it names that; or the entry that loads it. */
function unlist(project: string, list: string, part: string): number {
  const path = join(project, list);
  const text = fs.readFileSync(path, "utf8");
  const entry = new RegExp(`^ {2}\\{ kind: .*import\\("\\.\\./parts/${part}/.*\\},\n`, "m");
  if (entry.test(text)) {
    fs.writeFileSync(path, text.replace(entry, ""));
    return 1;
  }
  const line = new RegExp(`^import \\{ (\\w+) \\} from "\\.\\./parts/${part}/[^"]+";\n`, "m");
  const [whole, name] = line.exec(text) ?? [];
  if (whole === undefined) return 0;
  const left = text
    .replace(whole, "")
    .replace(new RegExp(`(?<![/\\w])${name}(?![/\\w]),? ?`, "g"), "");
  fs.writeFileSync(path, left);
  // A part may be in a list with several things.
  return 1 + unlist(project, list, part);
}

test.each(sampleOf(PARTS, 2))("without parts/%s it compiles, and runs a dropped file", (part) => {
  const project = copyProject();
  expect(removePart(project, part)).toBeGreaterThan(0);
  const run = (program: string, ...args: string[]): string =>
    execFileSync(process.execPath, [join(project, program), ...args], {
      cwd: project,
      encoding: "utf8",
      stdio: ["ignore", "pipe", "pipe"],
    });
  // Prints what does not compile.
  run("node_modules/typescript/bin/tsc", "-p", "tsconfig.build.json");
  run("scripts/bundle.mjs");
  const state = join(project, "state");
  run("bin/mailchute.js", "init", state);
  fs.writeFileSync(join(state, "mailbox", "inbox", "hi.json"), '{"exec": ["echo", "hello"]}');
  fs.rmSync(join(state, "roadmap.yaml"), { force: true });
  run("bin/mailchute.js", "run", "--drain", "--state", state);
  const record = fs.readFileSync(join(state, "mailbox", "outbox", "hi_result.json"), "utf8");
  expect(JSON.parse(record)).toMatchObject({ task_id: "hi", output: "hello\n" });
});
