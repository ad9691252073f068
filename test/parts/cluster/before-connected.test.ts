/** A bridge that starts while no server answers stops what an earlier process has taken, in time, and not before. */
import fs from "node:fs";
import { join } from "node:path";
import { afterEach, expect, test, vi } from "vitest";
import { stopUnrenewed } from "../../../src/parts/cluster/bridge/before-connected.ts";
import { dispatchId } from "../../../src/parts/cluster/protocol/dispatch.ts";
import { stubBridge } from "./stub-bridge.ts";

const DISPATCH = { tree: "desk.abcd2345", task: "t", submission: "s", attempt: 1 };
const ACK_WAIT_MS = 3000;

afterEach(() => {
  vi.useRealTimers();
});

function started() {
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval", "performance"] });
  const { machine, trays, tree } = stubBridge();
  const id = dispatchId(DISPATCH);
  machine.saveNote(id, { dispatch: DISPATCH, target: "gpu", lease: "1 x", state: "taken" });
  fs.writeFileSync(join(trays.inbox, `${id}.json`), JSON.stringify({ id, agent: "coder" }));
  const tell = (message: string): void => expect.unreachable(message);
  const end = stopUnrenewed(machine, { name: "laptop", ackWaitMs: ACK_WAIT_MS, tell });
  const cancels = (): string[] => fs.readdirSync(join(tree.control, "inbox"));
  return { end, cancels, state: () => machine.note(id)?.state };
}

test("its run is stopped when 0.6 of ack_wait is over", async () => {
  const { end, cancels, state } = started();
  await vi.advanceTimersByTimeAsync(0.5 * ACK_WAIT_MS);
  expect([state(), cancels().length]).toEqual(["taken", 0]);
  await vi.advanceTimersByTimeAsync(0.2 * ACK_WAIT_MS);
  expect([state(), cancels().length]).toEqual(["left", 1]);
  await vi.advanceTimersByTimeAsync(2 * ACK_WAIT_MS);
  expect(cancels()).toHaveLength(1);
  await end();
});

test("nothing is stopped when a server has answered before", async () => {
  const { end, cancels, state } = started();
  await vi.advanceTimersByTimeAsync(0.5 * ACK_WAIT_MS);
  await end();
  await vi.advanceTimersByTimeAsync(2 * ACK_WAIT_MS);
  expect([state(), cancels().length]).toEqual(["taken", 0]);
});
