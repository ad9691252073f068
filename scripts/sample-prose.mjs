#!/usr/bin/env node
/**
 * sample-prose.mjs: draws sentences at random from documents, help and messages (text), and comments, for a person to judge.
 * `npm run sample:prose -- 20 --kind docs --seed 7`: how many, of which kind (left out: all), and again the same ones.
 */
import fs from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { checkedFiles } from "./check-prose.mjs";
import { readFlags } from "./flags.mjs";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const WORDS_MIN = 4;
const STRING = /(["`])((?:(?!\1)[^\\\n])*\s(?:(?!\1)[^\\\n])*)\1/g;

/** What each kind of prose finds in a file. */
const READERS = {
  docs: (page) =>
    page
      .replace(/```[\s\S]*?```|<!-- [\s\S]*?-->/g, "")
      .split(/\n\s*\n|\n(?=\s*(?:[-*|]|\d+\.) )|(?<=\S) \| /),
  text: (code) =>
    [...code.replace(/["`] \+\s+["`]/g, "").matchAll(STRING)]
      .map(([, , text]) => text)
      .filter((text) => /^[\w<${]/.test(text) && !/[;{}]$|=>|^import /.test(text)),
  comments: (code) =>
    [...code.matchAll(/\/\*\*[\s\S]*?\*\/|(?:^\s*\/\/ .*\n)+/gm)].map(([text]) =>
      text.replace(/^\s*(?:\/\*\*|\*(?!\/)|\/\/)|\*\/$/gm, ""),
    ),
};

const sentencesOf = (text) =>
  text.replace(/\s+/g, " ").split(/(?<=[.!?:;])\s+(?=[A-Z`*]|mailchute )/);

/** A generator of numbers below 1 (mulberry32). */
function randomOf(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

const options = { seed: { type: "string" }, kind: { type: "string" } };
const { values, positionals } = readFlags(import.meta.url, { options, allowPositionals: true });
const sentences = checkedFiles().flatMap((file) => {
  const kinds = (file.endsWith(".md") ? ["docs"] : ["text", "comments"]).filter(
    (kind) => values.kind === undefined || values.kind === kind,
  );
  const content = fs.readFileSync(join(ROOT, file), "utf8");
  const found = kinds.flatMap((kind) => READERS[kind](content).flatMap(sentencesOf));
  return found.filter((one) => one.split(" ").length > WORDS_MIN).map((one) => `${file}: ${one}`);
});
const seed = Number(values.seed ?? Date.now() % 1_000_000);
const random = randomOf(seed);
console.log(`seed ${seed}, ${sentences.length} sentences`);
for (let left = Number(positionals[0] ?? 50); left > 0 && sentences.length > 0; left--)
  console.log(sentences.splice(Math.floor(random() * sentences.length), 1)[0]);
