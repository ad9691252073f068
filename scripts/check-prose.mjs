#!/usr/bin/env node
/** check-prose.mjs: refuses words that hide who does something, in sources and documents. Names each place, and ends with 1. */
import fs from "node:fs";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const ROOT = fileURLToPath(new URL("..", import.meta.url));

/** What is refused, and what to write there. */
const REFUSED = [
  [/\bwhoever\b/gi, "name who: a worker that …, a user who …, if you …"],
  [/\bsomebody\b/gi, "name who: a person, another process, a program"],
  [/\bnobody\b/gi, "name who does not: no supervisor, no process, or say what is not done"],
  [/\bin vain\b/gi, "say what does not happen"],
  [/\bmeanwhile\b/gi, "say between what: by then, in between, while …"],
  [/\bfor the (?:\w+(?:st|nd|rd|th)|…th) time\b/gi, "give the number: run 3"],
  [/\bhow-manieth\b/gi, "the number of the run"],
];

/** @returns {{ line: number, found: string, instead: string }[]} */
export function findProse(text) {
  return text
    .split("\n")
    .flatMap((content, index) =>
      REFUSED.flatMap(([pattern, instead]) =>
        [...content.matchAll(pattern)].map(([found]) => ({ line: index + 1, found, instead })),
      ),
    );
}

/** Sources and documents that are held to it, relative to the repository. */
export function checkedFiles() {
  const files = ["README.md", "ARCHITECTURE.md"];
  for (const folder of ["src", "docs"])
    for (const name of fs.readdirSync(join(ROOT, folder), { recursive: true, encoding: "utf8" }))
      if (/\.(?:ts|md)$/.test(name)) files.push(`${folder}/${name}`);
  return files;
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) {
  const faults = checkedFiles().flatMap((file) =>
    findProse(fs.readFileSync(join(ROOT, file), "utf8")).map(
      ({ line, found, instead }) => `${file}:${line}: "${found}": ${instead}`,
    ),
  );
  for (const fault of faults) console.error(fault);
  process.exitCode = faults.length === 0 ? 0 : 1;
}
