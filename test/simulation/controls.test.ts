/** The broken variants: the simulation must catch every one. */
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { openLargeCase, openSmallCase, SMALL_CASES } from "./cases.ts";
import { CONTROLS, type Control } from "./controls.ts";
import { exploreAll, walk } from "./explore.ts";

vi.mock("../../src/mailbox/files/random.ts", () => import("./tokens.ts"));
vi.mock("node:fs", async (original) =>
  (await import("./descriptors.ts")).overDisk(await original()),
);
// Nobody has a file of the simulated disk open.
vi.mock("../../src/host/writers.ts", () => ({ hasWriter: () => false }));

const { stackTraceLimit } = Error;
// Most calls of a simulated disk fail, as they should; nobody looks at their stacks.
beforeAll(() => {
  Error.stackTraceLimit = 0;
});
let caught = 0;
afterAll(() => {
  Error.stackTraceLimit = stackTraceLimit;
  const total = Object.keys(CONTROLS).length;
  process.stdout.write(`simulation: ${total} broken variants, ${caught} caught\n`);
});

const STATES_MAX = 6000;
const GLANCE_STATES = 60;
const SEEDS_MAX = 100;

async function findFault({ shownBy, ...broken }: Control): Promise<string | undefined> {
  for (const small of SMALL_CASES) {
    if (shownBy !== undefined && shownBy !== small.name) continue;
    const world = openSmallCase(small, broken);
    const statesMax = shownBy === undefined ? GLANCE_STATES : STATES_MAX;
    const { found } = await exploreAll(world, { kills: 0, statesMax });
    if (found !== undefined) return found.faults[0];
  }
  for (let seed = 1; seed <= SEEDS_MAX; seed++) {
    const { found } = await walk((chance) => openLargeCase(chance, broken), seed);
    if (found !== undefined) return found.faults[0];
  }
  return undefined;
}

test.each(Object.entries(CONTROLS))("caught: %s", async (_name, control) => {
  expect(await findFault(control)).toBeDefined();
  caught++;
});
