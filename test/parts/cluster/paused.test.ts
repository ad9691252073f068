/** While its pool is paused a tree sends nothing more. */
import fs from "node:fs";
import { expect, test } from "vitest";
import { stateTree } from "../../../src/core/state-tree.ts";
import { pauseOf } from "../../../src/parts/cluster/tree/pause.ts";
import { tempDir } from "../../support/temp-dir.ts";
import { waitFor } from "../../support/wait-for.ts";
import { stubBridge, TREE } from "./stub-bridge.ts";

test("a task that was held before the pause leaves after it", async () => {
  let isPaused = false;
  let looks = 0;
  const { bridge, hold, published } = stubBridge({
    isPaused: () => isPaused,
    publish: () => void looks++,
  });
  bridge.start();
  // What is held before that was sent by an earlier process.
  await waitFor(() => looks > 0, { what: "the first look" });
  hold("a");
  await waitFor(() => published.length === 1, { what: "the first job" });
  isPaused = true;
  hold("b");
  const before = looks;
  await waitFor(() => looks >= before + 2, { what: "two looks" });
  expect(published).toEqual([`${TREE}.a.s.1`]);
  isPaused = false;
  await waitFor(() => published.length === 2, { what: "the second job" });
});

test("control.json says whether it is, also one that a person has edited", () => {
  const tree = stateTree(tempDir());
  const isPaused = pauseOf(tree);
  expect(isPaused()).toBe(false);
  for (const [text, expected] of [
    ['{"paused": true}', true],
    ['{"paused": "yes"}', false],
    ["no json", false],
    ['{"paused": true, "x": 1}', true],
  ] as const) {
    fs.writeFileSync(tree.controlState, text);
    expect(isPaused(), text).toBe(expected);
  }
});
