/** What the death of its worker means for a run: whether it is used up, and how often it may not be. */
import fs from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { thisPlace } from "../../src/host/identity.ts";
import { accept, claimReady, newSubmission } from "../../src/mailbox/claim/claim.ts";
import { openTrays, type Trays } from "../../src/mailbox/files/trays.ts";
import { findRecoverable } from "../../src/mailbox/recover/find-recoverable.ts";
import { LeaseObserver } from "../../src/mailbox/recover/lease-observer.ts";
import { recoverStep } from "../../src/mailbox/recover/recover.ts";
import type { Recovered, Recoverer } from "../../src/mailbox/recover/recoverer.ts";
import { excuseCrash } from "../../src/supervisor/maintenance/machine-crash.ts";
import { tempDir } from "../support/temp-dir.ts";

const OWNER = "00000000dead-1-1";
/** A process of this machine before it was started anew. */
const OF_EARLIER_BOOT = `${thisPlace().replace(/^(.{4})(.{4})/, (_, host, boot) => `${host}${boot === "0000" ? "0001" : "0000"}`)}-1-1`;
const LEASE_TTL_MS = 1_000_000;

function recovererOf(trays: Trays, deaths: Recovered[], isMemory: boolean): Recoverer {
  let settlers = 0;
  return {
    trays,
    newOwner: () => `settler-${++settlers}`,
    judge: () => "dead",
    observer: new LeaseObserver(LEASE_TTL_MS),
    unfinished: new Set(),
    excused: new Map(),
    lackedMemory: () => isMemory,
    endLease: () => Promise.resolve(),
    policyOf: () => ({ maxAttempts: 1, agentId: "a" }),
    onRecovered: (what) => deaths.push(what),
    onSettled: () => {},
  };
}

/** A function that ends each worker that runs it. @returns what is told of each death, until it has failed */
async function dieAgainAndAgain(
  isMemory: boolean,
): Promise<{ deaths: Recovered[]; record: unknown }> {
  const trays = openTrays(join(tempDir(), "mailbox"), { durability: "process" });
  fs.writeFileSync(join(trays.inbox, "t.json"), '{"prompt":"p"}');
  const deaths: Recovered[] = [];
  const r = recovererOf(trays, deaths, isMemory);
  let ready = newSubmission(trays.clock, "t", 1);
  accept(trays, ready);
  for (let n = 1; fs.readdirSync(trays.failed).length === 0; n++) {
    claimReady(trays, ready, `${OWNER}-R${n}`);
    const files = trays.storage.list(trays.processing);
    for (const step of findRecoverable(r, files, LEASE_TTL_MS)) await recoverStep(r, step);
    const last = deaths.at(-1);
    if (last?.action === "reclaimed") ready = last.next;
  }
  const record = fs.readFileSync(join(trays.failed, "t_error.json"), "utf8");
  return { deaths, record: JSON.parse(record) };
}

it("a run whose worker died for want of memory is not used up, ten times, and then it is", async () => {
  const { deaths, record } = await dieAgainAndAgain(true);
  expect(deaths.slice(0, -1)).toEqual(
    Array.from({ length: 10 }, () =>
      expect.objectContaining({ action: "reclaimed", reason: "memory", isLastRun: false }),
    ),
  );
  expect(record).toMatchObject({
    error: "its worker died because memory ran out during attempt 1 of 1",
    attempts: 1,
  });
});

it("a run whose worker died of anything else is used up at once", async () => {
  const { deaths, record } = await dieAgainAndAgain(false);
  expect(deaths).toMatchObject([{ action: "failed", reason: "dead" }]);
  expect(record).toMatchObject({ error: "its worker died during attempt 1 of 1", attempts: 1 });
});

describe("a crash of the machine during a run", () => {
  /** @returns the numbers of the runs, until all three attempts are used up */
  async function crashAgainAndAgain(
    owner: string,
    session: object | undefined,
    excuses?: Recoverer["excusesCrash"],
  ): Promise<number[]> {
    const dir = tempDir();
    const sessions = join(dir, "sessions");
    fs.mkdirSync(sessions);
    const trays = openTrays(join(dir, "mailbox"), { durability: "process" });
    fs.writeFileSync(join(trays.inbox, "t.json"), '{"prompt":"p"}');
    let ready = newSubmission(trays.clock, "t", 1);
    accept(trays, ready);
    if (session !== undefined)
      fs.writeFileSync(join(sessions, `t@${ready.submission}.json`), JSON.stringify(session));
    const runs: number[] = [];
    for (let n = 1; fs.readdirSync(trays.failed).length === 0 && n < 20; n++) {
      runs.push(ready.attempt);
      claimReady(trays, ready, `${owner}-R${n}`);
      const deaths: Recovered[] = [];
      // After each crash another supervisor begins, which remembers nothing.
      const r: Recoverer = {
        ...recovererOf(trays, deaths, false),
        policyOf: () => ({ maxAttempts: 3, agentId: "a" }),
        excusesCrash: excuses ?? ((name) => excuseCrash(sessions, name)),
      };
      for (const step of findRecoverable(r, trays.storage.list(trays.processing), LEASE_TTL_MS))
        await recoverStep(r, step);
      const last = deaths.at(-1);
      if (last?.action === "reclaimed") ready = last.next;
    }
    return runs;
  }

  it("uses up no attempt when the session goes on, three times", async () => {
    const runs = await crashAgainAndAgain(OF_EARLIER_BOOT, { v: 1, session_id: "s" });
    expect(runs).toEqual([1, 1, 1, 1, 2, 3]);
  });

  it("uses up an attempt without a session, and so does a death in the same boot", async () => {
    const used = [1, 2, 3];
    expect(await crashAgainAndAgain(OF_EARLIER_BOOT, undefined)).toEqual(used);
    expect(await crashAgainAndAgain(OF_EARLIER_BOOT, { v: 1, session_id: null })).toEqual(used);
    const ofThisBoot = `${thisPlace()}-1-1`;
    expect(await crashAgainAndAgain(ofThisBoot, { v: 1, session_id: "s" })).toEqual(used);
    const ofOtherHost = OWNER;
    expect(await crashAgainAndAgain(ofOtherHost, { v: 1, session_id: "s" })).toEqual(used);
  });

  it("would never end if the count were lost with the machine: the check notices that", async () => {
    const runs = await crashAgainAndAgain(OF_EARLIER_BOOT, { v: 1, session_id: "s" }, () => true);
    expect(runs).toHaveLength(19);
  });
});
