/**
 * The production code of the cluster's protocol between a tree, two machines and a broker, all in memory: every order of their calls,
 * with faults before each of them. `npm run test:long` goes on where this stops.
 */
import { afterAll, describe, expect, test } from "vitest";
import { sampleOf } from "../support/walks.ts";
import { BROKEN, breakCluster } from "./cluster-broken.ts";
import { explore } from "./cluster-explore.ts";
import { type Budget, NO_FAULTS, newWorld } from "./cluster-world.ts";

/** What may go wrong in each case. A second run is a fault of the protocol where no machine is killed, lost or cut off. */
const CASES: Readonly<Record<string, Partial<Budget>>> = {
  "all goes well": {},
  "runs fail": { failures: 2 },
  "the origin's bridge is killed": { originKills: 2, failures: 1 },
  "bridges of machines are killed": { kills: 2, failures: 1 },
  "the servers lose their disks": { wipes: 2, failures: 1 },
  "the servers lose their disks, and the origin's bridge is killed": { wipes: 1, originKills: 1 },
  "a machine is cut off": { cuts: 2, failures: 1 },
  "a machine is lost": { losses: 1, originKills: 1, failures: 1 },
  "a machine dies and comes back": { deaths: 2, failures: 1, originKills: 1 },
  "the task is cancelled": { cancels: 1, failures: 1, originKills: 1 },
  "the task is cancelled while a machine is cut off": { cancels: 1, cuts: 1, kills: 1 },
  "the task is let go": { returns: 2, originKills: 1 },
  "answers of the servers are lost": { lostAnswers: 2, failures: 1 },
  everything: {
    originKills: 1,
    kills: 1,
    losses: 1,
    deaths: 1,
    wipes: 1,
    cuts: 1,
    failures: 1,
    cancels: 1,
    returns: 1,
    lostAnswers: 1,
  },
};

const longMax = Number(process.env["MAILCHUTE_SIM_LONG"] ?? 0);
const isLong = longMax > 0;
const seed = Number(process.env["MAILCHUTE_SIM_SEED"] ?? 1);
const STATES_MAX = isLong ? longMax : 300;
const CONTROL_STATES_MAX = 20_000;

const totals = { states: 0, complete: 0, caught: 0 };
afterAll(() => {
  const { states, complete, caught } = totals;
  process.stdout.write(
    `simulation of the cluster: ${states} states of ${Object.keys(CASES).length} cases, ${complete} of them to their end; ${caught} of ${Object.keys(BROKEN).length} broken variants caught\n`,
  );
});

describe("each task settles once, and nothing is left over", () => {
  test.each(Object.entries(CASES))(
    "%s",
    { timeout: isLong ? 7_200_000 : 300_000 },
    async (_, left) => {
      const world = newWorld({ ...NO_FAULTS, ...left });
      const { states, isComplete, found } = await explore(world, { statesMax: STATES_MAX, seed });
      totals.states += states;
      if (isComplete) totals.complete++;
      process.stdout.write(`${states} states\n`);
      expect(found, `again with MAILCHUTE_SIM_SEED=${seed}`).toBeUndefined();
      expect(states).toBeGreaterThan(100);
    },
  );
});

const VARIANTS = Object.keys(BROKEN);

test.each(isLong ? VARIANTS : sampleOf(VARIANTS, 2))(
  "caught: %s",
  { timeout: 300_000 },
  async (name) => {
    const mend = breakCluster(name);
    try {
      const world = newWorld({ ...NO_FAULTS, ...BROKEN[name]?.left });
      const { found, states } = await explore(world, { statesMax: CONTROL_STATES_MAX, seed });
      process.stdout.write(`caught: ${name}: ${states} states: ${found?.fault}\n`);
      expect(found, `${states} states`).toBeDefined();
      totals.caught++;
    } finally {
      mend();
    }
  },
);
