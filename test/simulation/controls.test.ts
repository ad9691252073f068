/** The broken variants: the simulation must catch every one. */
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { openLargeCase, openSmallCase, SMALL_CASES } from "./cases.ts";
import { CONTROLS, type Control } from "./controls.ts";
import { exploreAll, walk } from "./explore.ts";

vi.mock("../../src/mailbox/random.ts", () => import("./tokens.ts"));

const { stackTraceLimit } = Error;
// Most calls of a simulated disk fail, as they should; nobody looks at their stacks.
beforeAll(() => {
  Error.stackTraceLimit = 0;
});
afterAll(() => {
  Error.stackTraceLimit = stackTraceLimit;
});

const STATES_MAX = 3000;
const GLANCE_STATES = 60;
const SEEDS_MAX = 100;

async function findFault({ variant, shownBy }: Control): Promise<string | undefined> {
  for (const small of SMALL_CASES) {
    if (shownBy !== undefined && shownBy !== small.name) continue;
    const world = openSmallCase(small, variant);
    const statesMax = shownBy === undefined ? GLANCE_STATES : STATES_MAX;
    const { found } = await exploreAll(world, { kills: 0, statesMax });
    if (found !== undefined) return found.faults[0];
  }
  for (let seed = 1; seed <= SEEDS_MAX; seed++) {
    const { found } = await walk((chance) => openLargeCase(chance, variant), seed);
    if (found !== undefined) return found.faults[0];
  }
  return undefined;
}

test.each(Object.entries(CONTROLS))("caught: %s", async (_name, control) => {
  expect(await findFault(control)).toBeDefined();
});
