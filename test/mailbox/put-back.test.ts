/** Putting a claimed task back while the mailbox is elsewhere: it may come back, so the lease is not lost. */
import fs from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { accept, claimReady, hold, newSubmission, putBack } from "../../src/mailbox/claim.ts";
import { openTrays } from "../../src/mailbox/trays.ts";
import { tempDir } from "../support/temp-dir.ts";

it.each([
  ["put back", putBack, "2~ready", [0, true]],
  ["held", hold, "1~hold-quota-x", ["quota-x"]],
] as const)(
  "a task that cannot be %s because its mailbox was moved away is still claimed, and goes back later",
  (_what, act, name, args) => {
    const trays = openTrays(join(tempDir(), "mailbox"), { durability: "process" });
    fs.writeFileSync(join(trays.inbox, "t.json"), '{"prompt":"p"}');
    const ready = newSubmission(trays.clock, "t", 1);
    accept(trays, ready);
    const claim = claimReady(trays, ready, "00000000dead-1-1");
    if (claim === undefined) throw new Error("no claim");
    const goBack = act as (...all: unknown[]) => unknown;
    fs.renameSync(trays.dir, `${trays.dir}-away`);
    expect(() => goBack(trays, claim, ...args)).toThrow("ENOENT");
    fs.renameSync(`${trays.dir}-away`, trays.dir);
    expect(goBack(trays, claim, ...args)).toBeDefined();
    expect(fs.readdirSync(trays.processing)).toEqual([expect.stringContaining(`.${name}`)]);
    expect(goBack(trays, claim, ...args)).toBeUndefined();
  },
);
