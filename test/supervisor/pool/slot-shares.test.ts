/** Slots of a pool: who may start how much, whatever its workers hold. */
import { spawn } from "node:child_process";
import fs from "node:fs";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { DEFAULT_SETTINGS } from "../../../src/core/settings.ts";
import { stateTree } from "../../../src/core/state-tree.ts";
import { identityOf, ownerPrefix } from "../../../src/host/identity.ts";
import { Pool } from "../../../src/supervisor/pool/pool.ts";
import { shareSlots } from "../../../src/supervisor/pool/slot-shares.ts";
import { digestSettings } from "../../../src/worker/settings-digest.ts";
import { tempDir } from "../../support/temp-dir.ts";

describe("slots", () => {
  it("are shared evenly, and the first get what is over", () => {
    expect(shareSlots(5, [0, 0])).toEqual([3, 2]);
  });

  it("stay with a worker that runs more than an even share", () => {
    expect(shareSlots(8, [6, 0])).toEqual([6, 2]);
  });

  it("are nobody's while more runs than may", () => {
    expect(shareSlots(4, [4, 3])).toEqual([0, 0]);
  });
});

/** A pool that has adopted two workers: live processes, each given so many slots when it started. */
function poolOfTwo(
  slotsEach: number,
  max: number,
): { pool: Pool; ids: string[]; owners: string[] } {
  const tree = stateTree(tempDir());
  fs.mkdirSync(tree.workers, { recursive: true });
  const settings = { ...DEFAULT_SETTINGS, workers: max, processes: 2 };
  const digest = digestSettings(settings, tree.mailbox);
  const ids: string[] = [];
  const owners: string[] = [];
  for (let i = 0; i < 2; i++) {
    const child = spawn("sleep", ["60"], { stdio: "ignore" });
    onTestFinished(() => void child.kill("SIGKILL"));
    const identity = identityOf(child.pid ?? 0);
    const { place, pid, startTicks } = identity;
    const id = `w-${pid.toString(36)}-${startTicks.toString(36)}`;
    const document = { id, pid, place, start_ticks: startTicks, slots: slotsEach };
    fs.writeFileSync(
      join(tree.workers, `${id}.json`),
      JSON.stringify({
        ...document,
        host: "",
        supervisor_pid: 1,
        settings: digest,
        started_at: "",
      }),
    );
    ids.push(id);
    owners.push(ownerPrefix(identity));
  }
  const pool = new Pool(settings, tree);
  pool.survey();
  return { pool, ids, owners };
}

describe("the slots of workers", () => {
  function sharesOf(two: ReturnType<typeof poolOfTwo>, claims: readonly number[]): number[] {
    const held = new Map(two.owners.map((owner, index) => [owner, claims[index] ?? 0]));
    const shares = two.pool.shares(held);
    return two.ids.map((id) => shares[id] ?? -1);
  }

  it("stay even when one holds many claims that have run and wait for the disk", () => {
    const two = poolOfTwo(8, 16);
    expect(sharesOf(two, [255, 0])).toEqual([8, 8]);
    expect(sharesOf(two, [255, 3])).toEqual([8, 8]);
    expect(two.pool.isOversubscribed).toBe(false);
  });

  it("are none after a downscale until few enough are held, then even again", () => {
    const two = poolOfTwo(8, 16);
    expect(sharesOf(two, [8, 8])).toEqual([8, 8]);
    two.pool.setMaxSlots(4);
    expect(sharesOf(two, [8, 8])).toEqual([0, 0]);
    expect(sharesOf(two, [1, 8])).toEqual([0, 0]);
    expect(sharesOf(two, [1, 3])).toEqual([1, 3]);
    expect(sharesOf(two, [1, 1])).toEqual([2, 2]);
  });

  it("count what was claimed by an earlier, larger share", () => {
    const two = poolOfTwo(8, 16);
    two.pool.setMaxSlots(4);
    expect(sharesOf(two, [0, 0])).toEqual([2, 2]);
    // Claimed in the moment before it heard of its share.
    expect(sharesOf(two, [6, 0])).toEqual([0, 0]);
  });
});
