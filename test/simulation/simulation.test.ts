/**
 * The production functions of src/mailbox, interleaved at every storage call, killed and cut off from power: small cases in
 * every order, large ones by seed. `npm run test:long` goes on where this stops; MAILCHUTE_SIM_SEED=n walks one seed again.
 */
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { openLargeCase, openLoneCase, openOnceCase, openSmallCase, SMALL_CASES } from "./cases.ts";
import { type Case, exploreAll, type Found, walk } from "./explore.ts";

vi.mock("../../src/mailbox/files/random.ts", () => import("./tokens.ts"));
vi.mock("node:fs", async (original) =>
  (await import("./descriptors.ts")).overDisk(await original()),
);
// Nobody has a file of the simulated disk open.
vi.mock("../../src/host/writers.ts", () => ({ hasWriter: () => false }));

/** How many calls of large cases `npm run test:long` walks. */
const longCalls = Number(process.env["MAILCHUTE_SIM_LONG"] ?? 0);
const isLong = longCalls > 0;
const seedWanted = process.env["MAILCHUTE_SIM_SEED"];
/** Seeds of the long run begin where chance says, so that each run looks elsewhere. */
const firstSeed = isLong ? Math.floor(Math.random() * 2 ** 31) : 1;
/** A small case gets its share of the calls, and at least what CI walks. */
const smallStatesMax = Math.min(100_000, Math.max(2_000, Math.round(longCalls / 20)));
const STATES = {
  small: isLong ? smallStatesMax : 1_000,
  large: isLong ? longCalls : 30_000,
};

/** By the last digit of the seed. */
const OTHER_CASES: Readonly<Record<number, Case>> = { 0: openLoneCase, 5: openOnceCase };

const { stackTraceLimit } = Error;
let smallStates = 0;
let largeStates = 0;
let ends = 0;
let completeCases = 0;
let seeds = 0;
// Most calls of a simulated disk fail, as they should; nobody looks at their stacks.
beforeAll(() => {
  Error.stackTraceLimit = 0;
});
afterAll(() => {
  Error.stackTraceLimit = stackTraceLimit;
  const small = `${smallStates} states and ${ends} ends of ${SMALL_CASES.length} small cases, ${completeCases} of them to their end`;
  process.stdout.write(`simulation: ${small}; ${largeStates} states of ${seeds} large ones\n`);
});

function tell(found: Found | undefined, how: string): string {
  if (found === undefined) return "";
  const { faults, path, trail } = found;
  return [how, ...faults, `order: ${path.join(", ")}`, ...trail].join("\n");
}

describe.skipIf(seedWanted !== undefined)("in every order of its calls", () => {
  const timeout = isLong ? 3_600_000 : 300_000;
  test.each(SMALL_CASES)("$name", { timeout }, async (small) => {
    const { kills } = small;
    const statesMax = isLong ? STATES.small : (small.statesMax ?? STATES.small);
    const explored = await exploreAll(openSmallCase(small), { kills, statesMax });
    smallStates += explored.states;
    ends += explored.ends;
    if (explored.isComplete) completeCases++;
    expect(tell(explored.found, small.name)).toBe("");
    expect(explored.states).toBeGreaterThan(50);
  });
});

test("large cases put together by chance keep every promise, whoever dies and when the power goes", {
  timeout: isLong ? 24 * 3_600_000 : 400_000,
}, async () => {
  const from = seedWanted === undefined ? firstSeed : Number(seedWanted);
  for (let seed = from; largeStates < STATES.large; seed++) {
    const open = OTHER_CASES[seed % 10] ?? openLargeCase;
    const { calls, found } = await walk(open, seed);
    seeds++;
    largeStates += calls;
    expect(tell(found, `again with MAILCHUTE_SIM_SEED=${seed}`)).toBe("");
    if (seedWanted !== undefined) break;
  }
});

test("the same seed is the same walk", async () => {
  const walks = [await walk(openLargeCase, 7), await walk(openLargeCase, 7)];
  expect(walks[0]).toEqual(walks[1]);
  expect(walks[0]?.calls).toBeGreaterThan(20);
});
