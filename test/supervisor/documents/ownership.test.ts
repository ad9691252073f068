/** Who stands in supervisor.json stays or steps down by who came last, and never by what a clock says. */
import { spawnSync } from "node:child_process";
import fs from "node:fs";
import { expect, it, onTestFinished } from "vitest";
import type { SupervisorDocument } from "../../../src/core/documents.ts";
import { type StateTree, stateTree } from "../../../src/core/state-tree.ts";
import { thisProcess } from "../../../src/host/identity.ts";
import { systemClock } from "../../../src/host/system-clock.ts";
import { Ownership, type OwnershipFacts } from "../../../src/supervisor/documents/ownership.ts";
import { tempDir } from "../../support/temp-dir.ts";

const HOUR_MS = 3_600_000;
const FACTS: OwnershipFacts = {
  status: "running",
  workers: 1,
  processes: 1,
  watching: "events",
  waiting: {
    runnable: 0,
    delayed: 0,
    blocked: 0,
    unmatched: 0,
    unsettled: 0,
    is_complete: true,
  },
  roadmap: null,
  roadmap_problem: null,
};

/** What a supervisor writes that started at this time. */
function stand(tree: StateTree, nonce: string, pid: number, startedMs: number): void {
  const { place, startTicks } = thisProcess();
  const at = new Date(startedMs).toISOString();
  const who = { pid, place, start_ticks: startTicks, nonce, started_at: at, heartbeat_at: at };
  fs.writeFileSync(tree.supervisor, JSON.stringify({ ...who, ...FACTS }));
}

function standing(tree: StateTree): SupervisorDocument {
  return JSON.parse(fs.readFileSync(tree.supervisor, "utf8")) as SupervisorDocument;
}

async function takeTree(tree: StateTree): Promise<Ownership> {
  const presence = new Ownership(tree, systemClock);
  await presence.take(FACTS);
  onTestFinished(() => presence.leave(FACTS));
  return presence;
}

it("a supervisor stays although the dead one before it started at a later time: the clock was set back", async () => {
  const tree = stateTree(tempDir());
  stand(tree, "before", spawnSync("true").pid, Date.now() + HOUR_MS);
  const presence = await takeTree(tree);
  presence.write(FACTS);
  expect(presence.isLost).toBe(false);
  expect(standing(tree).pid).toBe(process.pid);
});

it("rubbish in supervisor.json is nobody: the supervisor stays, and writes who it is", async () => {
  const tree = stateTree(tempDir());
  stand(tree, "before", spawnSync("true").pid, Date.now());
  const presence = await takeTree(tree);
  for (const rubbish of ["{}", '{"nonce":5,"status":"running"}', '{"pid":1,"place":null}']) {
    fs.writeFileSync(tree.supervisor, rubbish);
    presence.write(FACTS);
    expect(presence.isLost, rubbish).toBe(false);
    expect(standing(tree).pid).toBe(process.pid);
  }
});

it.each([
  ["ahead", HOUR_MS],
  ["behind", -HOUR_MS],
])("a supervisor steps down for one that came after it, whose clock is %s", async (_, aheadMs) => {
  const tree = stateTree(tempDir());
  const presence = await takeTree(tree);
  stand(tree, "after", process.ppid, Date.now() + aheadMs);
  presence.write(FACTS);
  expect(presence.isLost).toBe(true);
  expect(standing(tree).nonce).toBe("after");
});

it("a supervisor writes over the one before it, should that wake up once more", async () => {
  const tree = stateTree(tempDir());
  stand(tree, "before", process.ppid, Date.now() + HOUR_MS);
  const presence = await takeTree(tree);
  stand(tree, "before", process.ppid, Date.now() + HOUR_MS);
  presence.write(FACTS);
  expect(presence.isLost).toBe(false);
  expect(standing(tree).nonce).not.toBe("before");
});
