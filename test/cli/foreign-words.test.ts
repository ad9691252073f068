/**
 * README, the blocks of docs/, what `init` writes and the help of all verbs use no names from the specification of another program:
 * those stand where they are its defaults.
 */
import fs from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { loadCommand, REGISTRY } from "../../src/cli/shell/registry.ts";
import {
  EMPTY_CONFIG,
  SAMPLE_AGENT,
  SAMPLE_CONFIG,
  SAMPLE_ROADMAP,
} from "../../src/cli/text/samples.ts";
import { pagesOfDocs } from "../support/newcomer.ts";

const FOREIGN = /\b(?:june|EPIC|wave0|DROVER)\b/;

const ROOT = join(import.meta.dirname, "../..");

/** The code blocks of all pages of docs/. */
function blocksOfDocs(): string[] {
  const blocks = pagesOfDocs().flatMap((name) =>
    [...fs.readFileSync(join(ROOT, name), "utf8").matchAll(/^```.*?^```/gms)].map(
      ([text]) => `${name}: ${text}`,
    ),
  );
  expect(blocks.length).toBeGreaterThan(50);
  return blocks;
}

/** The examples of all verbs, README, the blocks of docs/, and what init writes. */
async function textsFor(newcomer: { example?: string }): Promise<string[]> {
  const specs = await Promise.all(Object.keys(REGISTRY).map((verb) => loadCommand(verb)));
  const examples = specs.flatMap((spec) => spec?.examples ?? []);
  expect(examples.length).toBeGreaterThan(50);
  const readme = fs.readFileSync(join(ROOT, "README.md"), "utf8");
  const written = [EMPTY_CONFIG, SAMPLE_CONFIG, SAMPLE_AGENT, SAMPLE_ROADMAP];
  return [...examples, readme, ...blocksOfDocs(), ...written, newcomer.example ?? ""];
}

test("README, blocks of docs, what init writes and the examples of all verbs use no foreign words", async () => {
  expect((await textsFor({})).filter((text) => FOREIGN.test(text))).toEqual([]);
});

test("caught: an example that names the orchestrator of the specification", async () => {
  const example = 'say "it is merged" --to june';
  expect((await textsFor({ example })).filter((text) => FOREIGN.test(text))).toEqual([example]);
});
