/** Whether the judge of the chaos and the soak tells a task that waits for nothing from one that has a reason to wait. */
import { spawnSync } from "node:child_process";
import fs from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { identityOf, ownerPrefix } from "../../src/host/identity.ts";
import { Liveness } from "../support/liveness.ts";
import { newPool, type Pool } from "../support/pool.ts";
import { waitFor } from "../support/wait-for.ts";

const LIMIT_MS = 20;
const READY = "b@abcdefgh.2~ready.json";

/** A pool that nobody runs, with one task in each tray. */
function leaveTwo(): Pool {
  const pool = newPool();
  fs.writeFileSync(join(pool.inbox, "a.json"), "{}");
  fs.writeFileSync(join(pool.processing, READY), "{}");
  return pool;
}

/** A claim of a process that has ended. */
function leaveOrphan(pool: Pool): string {
  const child = spawnSync("true");
  const owner = ownerPrefix({ ...identityOf(child.pid), startTicks: 1 });
  const file = `c@abcdefgh.1~w-${owner}-R1.json`;
  fs.writeFileSync(join(pool.processing, file), "{}");
  return file;
}

/** What is told until something else, which has no reason to wait, is told too. */
async function lookAt(pool: Pool, more: object, isAttended = true): Promise<string[]> {
  const o = { slots: 1, backoffMaxMs: 0, limitMs: LIMIT_MS };
  const liveness = new Liveness(pool, { ...o, ...more });
  // Far later, whatever the load of the machine does to both limits meanwhile.
  const all = new Liveness(pool, { ...o, slots: 9, limitMs: 10 * LIMIT_MS });
  await waitFor(
    () => {
      liveness.look(isAttended);
      all.look(true);
      return all.problems.length === 2;
    },
    { what: "two tasks that wait for nothing" },
  );
  return liveness.problems.map((problem) => problem.slice(0, problem.indexOf(":"))).sort();
}

test("a task that could run and does not is told of, in either tray", async () => {
  const pool = leaveTwo();
  expect(await lookAt(pool, {})).toEqual([
    "a.json waits for nothing",
    `${READY} waits for nothing`,
  ]);
});

test("what waits for its backoff, for others, for a slot or for a supervisor has a reason", async () => {
  const pool = leaveTwo();
  expect(await lookAt(pool, { backoffMaxMs: 3_600_000 })).toEqual(["a.json waits for nothing"]);
  expect(await lookAt(pool, { isWaiting: (id: string) => id === "a" })).toEqual([
    `${READY} waits for nothing`,
  ]);
  expect(await lookAt(pool, {}, false)).toEqual([]);
  fs.writeFileSync(join(pool.processing, "c@abcdefgh.1~w-x.json"), "{}");
  expect(await lookAt(pool, {})).toEqual([]);
});

test("a claim that is neither run nor taken back is told of, and holds no slot of others", async () => {
  const pool = leaveTwo();
  const orphan = leaveOrphan(pool);
  const liveness = new Liveness(pool, { slots: 1, backoffMaxMs: 0, limitMs: LIMIT_MS });
  await waitFor(
    () => {
      liveness.look(true);
      return liveness.problems.length === 3;
    },
    { what: "all three" },
  );
  expect(liveness.problems.map((problem) => problem.slice(0, problem.indexOf(":"))).sort()).toEqual(
    ["a.json", READY, orphan].map((file) => `${file} waits for nothing`),
  );
});
