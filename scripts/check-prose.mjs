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
  [/\ball the same\b/gi, "still, even so"],
  [/\bnone of ours\b/gi, "name whose it is: another program's"],
  [/\bwhosever\b/gi, "name whose: any process's, any user's"],
  [/\bever less often\b/gi, "with a growing delay"],
  [/\b(?:is|are|be) let be\b/gi, "name what stays: is left alone, goes on"],
  [/\b(?:could|can) be had\b/gi, "can be made, can be started, is available"],
  [/\b(?:is|are) through\b/gi, "has ended, has done"],
  [/\bwhatever (?:came|comes|becomes|became) of\b/gi, "whatever its result"],
  [/\bas good as begun\b/gi, "about to begin"],
  [/\bbut for\b/gi, "except for, without"],
  [/\banybody\b/gi, "name who: any user, any process"],
  [/\b(?:stands?|stood) still\b/gi, "was stopped, hangs"],
  [
    /(?:^|[.:;*/]) (?:Who|who) (?:stood|saves|dies|died|meets|measures|loses|has (?:lost|taken|not))\b/gm,
    "name who: a process that …, a worker that …",
  ],
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
