/** A tree lets as many tasks leave as its bridge says, and the next ones as soon as others have settled. */
import fs from "node:fs";
import { join } from "node:path";
import { expect, test, vi } from "vitest";
import { DEFAULT_SETTINGS } from "../../../src/core/settings.ts";
import { stateTree } from "../../../src/core/state-tree.ts";
import { laneOf, readLane } from "../../../src/core/waiting-task.ts";
import { openTrays } from "../../../src/mailbox/files/trays.ts";
import { cluster } from "../../../src/parts/cluster/part.ts";
import { LOOK_REST } from "../../../src/parts/cluster/rest.ts";
import { bridgeWriter } from "../../../src/parts/cluster/tree/bridge-document.ts";
import { clusterDir } from "../../../src/parts/cluster/tree/cluster-dir.ts";
import type { Part } from "../../../src/supervisor/environment/part.ts";
import { tempDir } from "../../support/temp-dir.ts";

const MAY_BE_SENT = 3;

/** The part on a tree of its own; `later` lets so much time pass and works (ms). */
function newPart() {
  const tree = stateTree(tempDir());
  const trays = openTrays(tree.mailbox, { durability: "process" });
  fs.mkdirSync(clusterDir(tree.dir), { recursive: true });
  const entry = { room: 2, may_be_sent: MAY_BE_SENT, sent: 0, begun: 0 };
  bridgeWriter(tree.dir)({
    version: "1",
    machine: "m",
    tree: "abcd2345",
    servers: [],
    is_connected: true,
    at: new Date().toISOString(),
    machines: [],
    targets: { gpu: entry },
    begun: [],
  });
  const agents = [{ name: "far", kind: "remote" as const, where: "gpu" }];
  const alerts = { report: (_: string, text: string) => expect.fail(text) };
  const env = { settings: { ...DEFAULT_SETTINGS, agents }, alerts, tree, trays };
  const part = cluster({ env } as never) as Required<Part>;
  const limit = part.ports.startLimit;
  const lane = readLane(laneOf({ agentId: "far" }));
  let nowMs = performance.now();
  const later = (ms: number): void => {
    nowMs = Math.max(nowMs, performance.now()) + ms;
    part.work({ nowMs, dueMs: nowMs });
  };
  /** Starts what may start, as a pool does. @returns how many */
  let count = 0;
  const start = (): string[] => {
    const ids: string[] = [];
    while (limit?.closed?.(lane) === undefined) {
      ids.push(`t${++count}`);
      limit?.noteStart?.(lane, `t${count}`);
    }
    return ids;
  };
  const put = (id: string, stage: string): void =>
    fs.writeFileSync(join(trays.processing, `${id}@s.1~${stage}.json`), "{}");
  const remove = (id: string): void => {
    for (const file of fs.readdirSync(trays.processing))
      if (file.startsWith(`${id}@`)) fs.rmSync(join(trays.processing, file));
  };
  return { part, trays, later, start, put, remove };
}

test("what was sent and settled between two looks takes no room", () => {
  const { later, start } = newPart();
  later(3000);
  expect(start()).toHaveLength(MAY_BE_SENT);
  later(300);
  expect(start()).toHaveLength(MAY_BE_SENT);
});

test("what has started and is not sent yet takes room, and what waits for its result", () => {
  const { later, start, put, remove } = newPart();
  later(3000);
  const [first = "", second = "", third = ""] = start();
  put(first, "ready");
  put(second, "w-0123456789ab-1-1-R1");
  put(third, "hold-cluster-gpu");
  later(300);
  expect(start()).toEqual([]);
  remove(third);
  later(300);
  expect(start()).toHaveLength(1);
});

test("it looks again soon after others have settled, and ever more seldom while none does", () => {
  const { part, later, start } = newPart();
  const pauseAfter = (ms: number): number => {
    later(ms);
    start();
    return part.nextMs(0) - performance.now();
  };
  later(3000);
  start();
  // A look that a busy machine has made slow is followed by a longer rest.
  expect(Math.min(...Array.from({ length: 10 }, () => pauseAfter(300)))).toBeLessThan(100);
  const { later: wait, start: fill, put, part: other } = newPart();
  wait(3000);
  for (const id of fill()) put(id, "hold-cluster-gpu");
  for (let looks = 0; looks < 6; looks++) wait(300);
  expect(fill()).toEqual([]);
  const beforeMs = performance.now();
  wait(300);
  expect(other.nextMs(0) - beforeMs).toBeGreaterThan(200);
});

test("a process that was stopped in the middle of a look goes on soon after it", () => {
  const { trays, later, start } = newPart();
  later(3000);
  expect(start()).toHaveLength(MAY_BE_SENT);
  let stoppedMs = 0;
  const now = performance.now.bind(performance);
  const clock = vi.spyOn(performance, "now").mockImplementation(() => now() + stoppedMs);
  const list = trays.storage.list.bind(trays.storage);
  const look = vi.spyOn(trays.storage, "list").mockImplementation((dir) => {
    stoppedMs = 3_600_000;
    return list(dir);
  });
  later(300);
  look.mockRestore();
  expect(stoppedMs).toBeGreaterThan(0);
  start();
  later(LOOK_REST.mostMs + 300);
  expect(start()).toHaveLength(MAY_BE_SENT);
  clock.mockRestore();
});
