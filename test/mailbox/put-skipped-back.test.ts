/** A retry puts back all tasks that were skipped, also those that are skipped meanwhile, and when it dies in the middle. */
import fs from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { type Skip, skipOf } from "../../src/core/dependencies.ts";
import { parseName } from "../../src/core/names.ts";
import { type Claim, claimFromInbox, readClaim } from "../../src/mailbox/claim/claim.ts";
import { openTrays, type Trays } from "../../src/mailbox/files/trays.ts";
import { readSkipped } from "../../src/mailbox/find/skipped-records.ts";
import { finishRetry, retry } from "../../src/mailbox/retry/retry.ts";
import { claimToSkip, recheckSkip, skipClaimed } from "../../src/mailbox/retry/skip.ts";
import { newDeadLetter } from "../../src/mailbox/settle/dead-letter.ts";
import { type Settlement, settleAll } from "../../src/mailbox/settle/settle.ts";
import { tempDir } from "../support/temp-dir.ts";

const OWNER = "00000000dead-1-1-K1";
const FAILED = {
  error: "no",
  code: "ErrAgent",
  kind: "exit",
  agentId: "any",
  attempts: 1,
  lastAttemptAt: 1,
} as const;

/** Each task depends on the one before it. */
function newChain(count: number): Trays {
  const trays = openTrays(join(tempDir(), "mailbox"), { durability: "process" });
  for (let i = 0; i < count; i++) {
    const task = { prompt: "p", metadata: { dependencies: i === 0 ? [] : [`t${i - 1}`] } };
    fs.writeFileSync(join(trays.inbox, `t${i}.json`), JSON.stringify(task));
  }
  return trays;
}

async function fail(trays: Trays, id: string): Promise<void> {
  const claim = claimFromInbox(trays, id, 1, OWNER) as Claim;
  await settleAll(trays, [newDeadLetter(trays, claim, FAILED, readClaim(trays, claim))], () => {});
}

/** @returns why what depends on it is skipped */
async function skip(trays: Trays, id: string, why: Skip): Promise<Skip> {
  const claim = claimToSkip(trays, id, OWNER) as Claim;
  const settlement = skipClaimed(trays, claim, why) as Settlement;
  await settleAll(trays, [settlement], () => recheckSkip(trays, id, why.cause));
  return skipOf(id, why);
}

const namesIn = (dir: string): string[] => fs.readdirSync(dir);

it("a task that is skipped after the retry has looked for skipped ones waits again, too", async () => {
  const trays = newChain(3);
  await fail(trays, "t0");
  const why = await skip(trays, "t1", skipOf("t0", undefined));
  const reopened: string[] = [];
  await retry(trays, "t0", {
    skipped: async () => {
      const found = await readSkipped(trays);
      await skip(trays, "t2", why);
      return found;
    },
    onReopened: (id) => reopened.push(id),
  });
  expect(reopened).toEqual(["t1", "t2"]);
  expect(namesIn(trays.failed)).toEqual([]);
  expect(namesIn(trays.inbox).sort()).toEqual(["t0.json", "t1.json", "t2.json"]);
});

it.each([0, 1])(
  "a retry of number %i that died between two slices is finished with all skipped tasks",
  async (first) => {
    const count = 100;
    const trays = newChain(count);
    await fail(trays, "t0");
    let why = skipOf("t0", undefined);
    for (let i = 1; i < count; i++) why = await skip(trays, `t${i}`, why);
    // A person has removed the record of the root: then the next one can be retried.
    if (first === 1) fs.unlinkSync(join(trays.failed, "t0_error.json"));
    const dying = retry(trays, `t${first}`, {
      onReopened(id) {
        if (id === "t40") throw new Error("dies");
      },
    });
    await expect(dying).rejects.toThrow("dies");
    expect(namesIn(trays.failed).length).toBeGreaterThan(20);
    for (const file of namesIn(trays.processing)) {
      const name = parseName(file);
      if (name !== undefined) await finishRetry(trays, name);
    }
    expect([namesIn(trays.failed), namesIn(trays.processing)]).toEqual([[], []]);
    expect(namesIn(trays.inbox)).toHaveLength(count - first);
  },
);
