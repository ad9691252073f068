/** The search for the bad work of a stack: it lands nothing unchecked, blames the lowest bad work, and repeats no check. */
import { expect, test } from "vitest";
import { type AttemptOutcome, failed } from "../../../src/core/outcome.ts";
import { stateTree } from "../../../src/core/state-tree.ts";
import {
  type Found,
  findRed,
  type Layer,
  noteRed,
  takeRed,
} from "../../../src/parts/landing/batch.ts";
import type { LandingOrder } from "../../../src/worker/landing-files.ts";
import { tempDir } from "../../support/temp-dir.ts";

type Find = (
  layers: number,
  check: (layers: number) => Promise<AttemptOutcome | undefined>,
) => Promise<Found>;

const LAYERS_MAX = 9;

/** Tries each set of bad works in each stack. @returns what is wrong */
async function problemsOf(find: Find): Promise<string[]> {
  const problems = new Set<string>();
  for (let layers = 1; layers <= LAYERS_MAX; layers++)
    for (let bad = 0; bad < 2 ** layers; bad++) {
      const isRed = (upTo: number): boolean => (bad & (2 ** upTo - 1)) !== 0;
      const said = new Map<number, boolean>();
      const { green, red } = await find(layers, async (upTo) => {
        if (said.has(upTo)) problems.add("a check is repeated");
        said.set(upTo, isRed(upTo));
        return isRed(upTo) ? failed("verify", "ErrVerify", `up to ${upTo}`) : undefined;
      });
      const lowest =
        Array.from({ length: layers }, (_, n) => n).find((n) => isRed(n + 1)) ?? layers;
      if (green > 0 && said.get(green) !== false) problems.add("it lands what was not checked");
      if (green < lowest) problems.add("good work below the bad one waits");
      const text = red?.kind === "failed" ? red.message : "";
      if (text !== (lowest === layers ? "" : `up to ${lowest + 1}`))
        problems.add("it blames another work");
      if (said.size > 1 + Math.ceil(Math.log2(layers))) problems.add("it checks too often");
    }
  return [...problems].sort();
}

test("for each set of bad works in stacks of up to nine", async () => {
  expect(await problemsOf(findRed)).toEqual([]);
});

test.each<[string, Find, string]>([
  [
    "halves once",
    async (layers, check) => {
      const red = await check(layers);
      return red === undefined ? { green: layers } : { green: Math.floor(layers / 2), red };
    },
    "it lands what was not checked",
  ],
  [
    "blames the highest",
    async (layers, check) => {
      const red = await check(layers);
      return red === undefined ? { green: layers } : { green: 0, red };
    },
    "it blames another work",
  ],
  [
    "tries one after the other",
    async (layers, check) => {
      for (let green = 0; green < layers; green++) {
        const red = await check(green + 1);
        if (red !== undefined) return { green, red };
      }
      return { green: layers };
    },
    "it checks too often",
  ],
])("control: a search that %s: noticed", async (_what, find, sign) => {
  expect(await problemsOf(find)).toContain(sign);
});

test("a check that was stopped blames no work", async () => {
  const stopped: AttemptOutcome = { kind: "released", message: "stop" };
  expect(await findRed(8, async () => stopped)).toEqual({ green: 0, red: stopped });
  let checks = 0;
  const found = await findRed(8, async () =>
    ++checks === 1 ? failed("verify", "ErrVerify", "red") : stopped,
  );
  expect([found, checks]).toEqual([{ green: 0, red: stopped }, 2]);
});

test("what a check of a stack has told counts once, for the same work on the same commit", () => {
  const tree = stateTree(tempDir());
  const order = { task_id: "a", lease: "l" } as LandingOrder;
  const layer: Layer = { order, tip: "tip", commit: "commit", added: [] };
  const red = failed("verify", "ErrVerify", "it is red", { lastWords: "why" });
  const note = (): void => noteRed(tree, layer, "below", red);
  note();
  expect(takeRed(tree, order, { tip: "tip", target: "below" })).toEqual(red);
  expect(takeRed(tree, order, { tip: "tip", target: "below" })).toBeUndefined();
  for (const other of [
    { tip: "tip", target: "another" },
    { tip: "another", target: "below" },
  ]) {
    note();
    expect(takeRed(tree, order, other)).toBeUndefined();
  }
  note();
  expect(
    takeRed(tree, { ...order, lease: "later" }, { tip: "tip", target: "below" }),
  ).toBeUndefined();
});
