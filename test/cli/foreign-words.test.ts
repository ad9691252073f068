/** README and the help of all verbs use no names from the specification of another program: those stand where they are its defaults. */
import fs from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { loadCommand, REGISTRY } from "../../src/cli/shell/registry.ts";

const FOREIGN = /\b(?:june|EPIC|wave0|DROVER)\b/;

/** The examples of all verbs, and README. */
async function textsFor(newcomer: { example?: string }): Promise<string[]> {
  const specs = await Promise.all(Object.keys(REGISTRY).map((verb) => loadCommand(verb)));
  const examples = specs.flatMap((spec) => spec?.examples ?? []);
  expect(examples.length).toBeGreaterThan(50);
  const readme = fs.readFileSync(join(import.meta.dirname, "../../README.md"), "utf8");
  return [...examples, readme, newcomer.example ?? ""];
}

test("README and the examples of all verbs use no foreign words", async () => {
  expect((await textsFor({})).filter((text) => FOREIGN.test(text))).toEqual([]);
});

test("caught: an example that names the orchestrator of the specification", async () => {
  const example = 'say "it is merged" --to june';
  expect((await textsFor({ example })).filter((text) => FOREIGN.test(text))).toEqual([example]);
});
