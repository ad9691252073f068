/**
 * The production code of the delivery of mail, on a file system in memory: every order of what people, a supervisor and runs of one
 * agent do, with deaths of the supervisor at each of its calls. `npm run test:long` goes on where this stops.
 */
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { BROKEN, breakMail } from "../crash/mail/broken.ts";
import { sampleOf } from "../support/walks.ts";
import { explore } from "./mail-explore.ts";
import { type Left, newWorld, wallMs } from "./mail-world.ts";

vi.mock("../../src/mailbox/files/random.ts", () => import("./tokens.ts"));
vi.mock("node:fs", async (original) =>
  (await import("./mail-disk.ts")).overMailDisk(await original()),
);
vi.mock("write-file-atomic", async () => (await import("./mail-disk.ts")).ATOMIC);
vi.mock("../../src/host/file-lock.ts", () => ({
  lockFile: async () => async () => {},
  underLock: async (_: string, work: () => unknown) => work(),
}));

interface Case {
  name: string;
  left: Left;
  attemptsMax?: number;
  isFine?: boolean;
}

const NONE: Left = { sends: 0, acks: 0, crashes: 0, failures: 0, tasks: 0 };
const CASES: readonly Case[] = [
  { name: "two messages", left: { ...NONE, sends: 2, crashes: 1 } },
  { name: "a person reads", left: { ...NONE, sends: 2, acks: 1, crashes: 1 } },
  { name: "wake-ups fail", left: { ...NONE, sends: 1, failures: 2, crashes: 2 } },
  {
    name: "wake-ups are repeated",
    attemptsMax: 2,
    left: { ...NONE, sends: 2, acks: 1, failures: 1, crashes: 1 },
  },
  { name: "at work", left: { ...NONE, sends: 1, tasks: 1, failures: 1, crashes: 1 } },
  {
    name: "before each call of a look",
    isFine: true,
    left: { ...NONE, sends: 2, acks: 1, failures: 1 },
  },
];

const longMax = Number(process.env["MAILCHUTE_SIM_LONG"] ?? 0);
const isLong = longMax > 0;
const seed = Number(process.env["MAILCHUTE_SIM_SEED"] ?? 1);
const STATES_MAX = isLong ? longMax : 60;
const CONTROL_STATES_MAX = 4000;

beforeAll(() => {
  vi.spyOn(Date, "now").mockImplementation(wallMs);
});
const totals = { states: 0, steps: 0, deaths: 0, complete: 0, caught: 0 };
afterAll(() => {
  vi.restoreAllMocks();
  const { states, steps, deaths, complete, caught } = totals;
  process.stdout.write(
    `simulation of mail: ${states} states, ${steps} steps and ${deaths} deaths of ${CASES.length} cases, ${complete} of them to their end; ${caught} of ${Object.keys(BROKEN).length} broken variants caught\n`,
  );
});

async function walk({ attemptsMax = 1, isFine = false, left }: Case, statesMax: number) {
  return await explore(await newWorld(left, attemptsMax), { statesMax, isFine, seed });
}

describe("each message is seen, by one wake-up for each level, and counts as read only with proof", () => {
  test.each(CASES)("$name", { timeout: isLong ? 3_600_000 : 300_000 }, async (one) => {
    const { states, steps, deaths, isComplete, found } = await walk(one, STATES_MAX);
    totals.states += states;
    totals.steps += steps;
    totals.deaths += deaths;
    if (isComplete) totals.complete++;
    process.stdout.write(`${one.name}: ${states} states, ${steps} steps\n`);
    expect(found, `again with MAILCHUTE_SIM_SEED=${seed}`).toBeUndefined();
    expect(states).toBeGreaterThan(50);
  });
});

/** The case in which each shows. */
const SHOWN_BY: Readonly<Record<string, string>> = {
  "the cursor moves as soon as an offer is made": "two messages",
  "an offer is made before it is written": "two messages",
  "a wake-up is named by how far its agent has read": "wake-ups fail",
  "a failed wake-up is not recorded": "wake-ups fail",
  "a failure counts against the record that is there": "wake-ups fail",
  "a wake-up starts its agent without a look at its mail": "a person reads",
  "the note of a task goes before its exit is told": "two messages",
};

const VARIANTS = Object.keys(BROKEN);

test.each(isLong ? VARIANTS : sampleOf(VARIANTS, 2))(
  "caught: %s",
  { timeout: 300_000 },
  async (name) => {
    const mend = breakMail(name);
    try {
      const one = CASES.find((known) => known.name === SHOWN_BY[name]) ?? expect.fail("no case");
      const { found, states } = await walk(one, CONTROL_STATES_MAX);
      expect(found, `${states} states`).toBeDefined();
      totals.caught++;
      process.stdout.write(`caught: ${name}: ${states} states: ${found?.faults[0]}\n`);
    } finally {
      mend();
    }
  },
);
