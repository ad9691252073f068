/** A claim whose mailbox is elsewhere for a while: it may come back, so the lease is not lost. */
import fs from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import {
  accept,
  type Claim,
  claimReady,
  hold,
  isHeld,
  newSubmission,
  putBack,
  renewClaim,
} from "../../src/mailbox/claim/claim.ts";
import { nodeStorage } from "../../src/mailbox/files/node-storage.ts";
import { unlinkIfThere } from "../../src/mailbox/files/steps.ts";
import { openTrays, type Trays } from "../../src/mailbox/files/trays.ts";
import { tempDir } from "../support/temp-dir.ts";

function newClaim(): { trays: Trays; claim: Claim } {
  const trays = openTrays(join(tempDir(), "mailbox"), { durability: "process" });
  fs.writeFileSync(join(trays.inbox, "t.json"), '{"prompt":"p"}');
  const ready = newSubmission(trays.clock, "t", 1);
  accept(trays, ready);
  const claim = claimReady(trays, ready, "00000000dead-1-1");
  if (claim === undefined) throw new Error("no claim");
  return { trays, claim };
}

it.each([
  ["put back", putBack, "2~ready", [0, true]],
  ["held", hold, "1~hold-quota-x", ["quota-x"]],
] as const)(
  "a task that cannot be %s because its mailbox was moved away is still claimed, and goes back later",
  (_what, act, name, args) => {
    const { trays, claim } = newClaim();
    const goBack = act as (...all: unknown[]) => unknown;
    fs.renameSync(trays.dir, `${trays.dir}-away`);
    expect(() => goBack(trays, claim, ...args)).toThrow("ENOENT");
    fs.renameSync(`${trays.dir}-away`, trays.dir);
    expect(goBack(trays, claim, ...args)).toBeDefined();
    expect(fs.readdirSync(trays.processing)).toEqual([expect.stringContaining(`.${name}`)]);
    expect(goBack(trays, claim, ...args)).toBeUndefined();
  },
);

/** The mailbox is away for the first of these calls, and back right after it. */
function awayFor(trays: Trays, name: "touch" | "rename" | "unlink" | "look"): void {
  const { storage } = trays;
  const call = (...args: unknown[]): unknown =>
    (nodeStorage[name] as (...all: unknown[]) => unknown)(...args);
  const awayOnce = (...args: unknown[]): unknown => {
    trays.storage = storage;
    fs.renameSync(trays.dir, `${trays.dir}-away`);
    try {
      return call(...args);
    } finally {
      fs.renameSync(`${trays.dir}-away`, trays.dir);
    }
  };
  trays.storage = { ...storage, [name]: awayOnce };
}

it("a lease is not lost when its mailbox comes back right after a call that did not find it", () => {
  const { trays, claim } = newClaim();
  awayFor(trays, "look");
  expect(isHeld(trays, claim)).toBe(true);
  awayFor(trays, "touch");
  expect(renewClaim(trays, claim)).toBe(true);
  awayFor(trays, "rename");
  expect(() => hold(trays, claim, "quota-x")).toThrow("ENOENT");
  awayFor(trays, "touch");
  expect(() => putBack(trays, claim, 0, true)).toThrow("ENOENT");
  awayFor(trays, "unlink");
  expect(() => unlinkIfThere(trays, claim.path)).toThrow("ENOENT");
  expect(fs.existsSync(claim.path)).toBe(true);
  expect(putBack(trays, claim, 0, true)).toBeDefined();
  for (const call of [isHeld, renewClaim]) expect(call(trays, claim)).toBe(false);
});
