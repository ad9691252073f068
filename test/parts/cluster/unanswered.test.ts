/** A result for a tree that does not answer is told again more and more rarely, and the bridge says for which trees. */
import fs from "node:fs";
import { join } from "node:path";
import { afterEach, expect, test, vi } from "vitest";
import type { BridgeView } from "../../../src/parts/cluster/bridge/options.ts";
import { dispatchId } from "../../../src/parts/cluster/protocol/dispatch.ts";
import { stubBridge } from "./stub-bridge.ts";

const MINUTE_MS = 60_000;
const GONE = { tree: "gone.abcd2345", task: "t", submission: "s", attempt: 1 };

afterEach(() => {
  vi.useRealTimers();
});

test("a result without a receipt is told after 1, 2, 4 minutes, and at least once an hour", async () => {
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval", "performance"] });
  let view: BridgeView | undefined;
  let birth = "1";
  const { bridge, machine, trays, results, broker } = stubBridge({
    publish: (now) => {
      view = now;
    },
  });
  vi.spyOn(broker, "birth").mockImplementation(async () => birth);
  const id = dispatchId(GONE);
  machine.saveNote(id, { dispatch: GONE, target: "gpu", lease: "1 x", state: "taken" });
  const lease = `x-1-1@${id}@s.1`;
  const record = { task_id: id, status: "completed", attempts: 1, lease, agent_id: "coder" };
  const facts = { verdict: "pass", verdict_reason: "", output: null, exit_code: 0, run: null };
  fs.writeFileSync(
    join(trays.outbox, `${id}_result.json`),
    JSON.stringify({ ...record, ...facts, duration_ms: 1, completed_at: 1 }),
  );
  bridge.start();
  const pass = async (minutes: number): Promise<number> => {
    await vi.advanceTimersByTimeAsync(minutes * MINUTE_MS);
    return results.length;
  };
  expect(await pass(0.5)).toBe(1);
  expect(view?.unanswered).toEqual(new Map());
  expect(await pass(1)).toBe(2);
  expect(view?.unanswered).toEqual(new Map([[GONE.tree, 1]]));
  expect(await pass(1)).toBe(2);
  expect(await pass(2)).toBe(3);
  // After 7, 15, 31, 63, 123 and 183 minutes.
  expect(await pass(180)).toBe(9);
  // Servers that have lost all hear it at once.
  birth = "2";
  expect(await pass(0.1)).toBe(10);
  expect(view?.unanswered).toEqual(new Map());
  machine.removeNote(id);
  expect(await pass(2)).toBe(10);
});
