/** While its pool is paused a tree sends nothing more, and says what goes on. */
import fs from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { stateTree } from "../../../src/core/state-tree.ts";
import { goesOnText } from "../../../src/parts/cluster/gate-text.ts";
import type { BridgeDocument } from "../../../src/parts/cluster/tree/bridge-document.ts";
import { pauseOf } from "../../../src/parts/cluster/tree/pause.ts";
import { newPool, QUICK_CONFIG } from "../../support/pool.ts";
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

test("pause says what was sent before, and goes on", async () => {
  const remote = `${QUICK_CONFIG}
cluster: {servers: ["nats://127.0.0.1:1"], name: laptop}
agents: [{name: far, kind: remote, where: gpu}]`;
  const pool = newPool({ config: remote });
  await pool.start();
  const pause = async (): Promise<string> => (await pool.run(["pause", "--wait"])).stdout.trim();
  expect(await pause()).toBe("paused: true");
  for (const id of ["a", "b"]) {
    const path = join(pool.processing, `${id}@s.1~hold-cluster-gpu.json`);
    fs.writeFileSync(path, JSON.stringify({ id, agent: "far", prompt: "?" }));
  }
  expect(await pause()).toBe("paused: true, goes_on: 2 tasks that were sent for gpu before go on");
});

test("and how many of them machines have", () => {
  const text = (sent: number, begun: number): string | undefined => {
    const entry = { room: 4, may_be_sent: 6, sent, begun };
    const bridge = { targets: { gpu: entry } } as unknown as BridgeDocument;
    return goesOnText({ name: "gpu", sent, bridge });
  };
  expect(text(0, 0)).toBeUndefined();
  expect(text(1, 1)).toBe("1 task that was sent for gpu before goes on");
  expect(text(6, 4)).toBe(
    "6 tasks that were sent for gpu before go on: machines have 4 of them, and will take the rest",
  );
});
