/** Submitting once: whoever asks how often, and wherever processes die, the task runs once. */
import fs from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { encodeRecord } from "../../src/codec/records.ts";
import { ErrTaskExists } from "../../src/core/errors.ts";
import { leaseOf, resultName } from "../../src/core/names.ts";
import { accept, claimReady, newSubmission, readClaim } from "../../src/mailbox/claim/claim.ts";
import { sweepAll } from "../../src/mailbox/clean/sweep.ts";
import { dropStagedLink } from "../../src/mailbox/files/dropped-file.ts";
import { nodeStorage } from "../../src/mailbox/files/node-storage.ts";
import type { Storage } from "../../src/mailbox/files/storage.ts";
import { type Durability, openTrays, type Trays } from "../../src/mailbox/files/trays.ts";
import { newSettlement, settleAll } from "../../src/mailbox/settle/settle.ts";
import { dropIdentical } from "../../src/mailbox/submit/duplicates.ts";
import { type Submission, submit } from "../../src/mailbox/submit/submit.ts";
import { finishTickets, submitOnce } from "../../src/mailbox/submit/submit-once.ts";
import { newPool } from "../support/pool.ts";
import { tempDir } from "../support/temp-dir.ts";

const DAY_S = 24 * 60 * 60;
const RULES = { outboxDays: 7, failedDays: 30 };

function openMailbox(durability: Durability = "process"): Trays {
  return openTrays(join(tempDir(), "mailbox"), { durability });
}

function task(id: string, prompt = "x"): Submission {
  return { id, bytes: Buffer.from(JSON.stringify({ id, prompt })) };
}

function inOnce({ dir }: Trays): string[] {
  const once = join(dir, ".once");
  return fs.existsSync(once) ? fs.readdirSync(once).sort() : [];
}

/** Accepts and runs what waits, as a supervisor and a worker do. A consumer takes each record away. @returns the prompts that ran */
async function runAll(trays: Trays): Promise<string[]> {
  const ran: string[] = [];
  for (const file of fs.readdirSync(trays.inbox)) {
    const id = file.slice(0, -5);
    const { nlink, ino } = fs.statSync(join(trays.inbox, file));
    if (nlink > 1) expect(dropStagedLink(trays, id, ino)).toBe(true);
    const name = newSubmission(trays.clock, id, 1);
    expect(accept(trays, name)).toBe(true);
    const claim = claimReady(trays, name, "me");
    if (claim === undefined) throw new Error("no claim");
    const { task: claimed, text } = readClaim(trays, claim);
    const record = {
      task_id: id,
      status: "completed" as const,
      output: null,
      verdict: "pass" as const,
      verdict_reason: "",
      agent_id: "a",
      duration_ms: 1,
      completed_at: 1,
      attempts: 1,
      lease: leaseOf(claim.name),
      exit_code: 0,
      run: null,
    };
    await settleAll(
      trays,
      [newSettlement(claim, "completed", encodeRecord(record, text), "me")],
      () => {},
    );
    fs.unlinkSync(join(trays.outbox, resultName(id)));
    ran.push(claimed.prompt ?? "");
  }
  return ran;
}

const CHANGES = ["create", "link", "rename", "unlink", "makeDir"] as const;

/** The trays as a process sees them that dies after `count` changes of the disk: nothing of it happens any more. */
function dyingAfter(trays: Trays, count: number): { trays: Trays; isDead: () => boolean } {
  let left = count;
  const die = (): void => {
    if (left-- <= 0) throw new Error("dead");
  };
  const storage = { ...nodeStorage } as Record<keyof Storage, unknown>;
  for (const change of CHANGES) {
    const step = nodeStorage[change] as (...args: unknown[]) => unknown;
    storage[change] = (...args: unknown[]) => {
      die();
      return step(...args);
    };
  }
  return { trays: { ...trays, storage: storage as unknown as Storage }, isDead: () => left < 0 };
}

describe.each<Durability>(["power", "process"])("with durability %s, a task", (durability) => {
  it("that is submitted once lies in the inbox under one name, and only a note is left", async () => {
    const trays = openMailbox(durability);
    expect(await submitOnce(trays, task("a"))).toBe("submitted");
    expect(fs.statSync(join(trays.inbox, "a.json")).nlink).toBe(1);
    expect(inOnce(trays)).toEqual(["a.note"]);
    expect(fs.readdirSync(trays.tmp)).toEqual([]);
  });

  it("is not submitted again while it waits, and not after a consumer has taken its record away", async () => {
    const trays = openMailbox(durability);
    await submitOnce(trays, task("a"));
    expect(await submitOnce(trays, task("a"))).toBe("unchanged");
    expect(await runAll(trays)).toEqual(["x"]);
    expect(await submitOnce(trays, task("a"))).toBe("unchanged");
    expect(await submitOnce(trays, task("a", "other"))).toBe("unchanged");
    await finishTickets(trays);
    expect(await runAll(trays)).toEqual([]);
  });

  it("runs once when eight submit it at once, each with other bytes", async () => {
    const trays = openMailbox(durability);
    const outcomes = await Promise.all(
      Array.from({ length: 8 }, (_, n) => submitOnce(trays, task("a", `of ${n}`))),
    );
    expect(outcomes).toContain("submitted");
    expect(await runAll(trays)).toHaveLength(1);
    await finishTickets(trays);
    expect(await runAll(trays)).toEqual([]);
    expect(inOnce(trays)).toEqual(["a.note"]);
  });
});

describe("a submitter that dies after each of its changes", () => {
  /** Lets it die after `count` changes, then does `then`. @returns how often the task ran; undefined when it did not die */
  async function runsAfterDeath(
    count: number,
    then: (trays: Trays) => Promise<unknown>,
  ): Promise<number | undefined> {
    const trays = openMailbox();
    const dying = dyingAfter(trays, count);
    await submitOnce(dying.trays, task("a")).catch(() => {});
    let runs = (await runAll(trays)).length;
    await then(trays);
    runs += (await runAll(trays)).length;
    await submitOnce(trays, task("a"));
    await finishTickets(trays);
    runs += (await runAll(trays)).length;
    expect(inOnce(trays)).toEqual(["a.note"]);
    return dying.isDead() ? runs : undefined;
  }

  it.each([
    ["asks again", (trays: Trays) => submitOnce(trays, task("a"))],
    ["a supervisor finishes what is left", (trays: Trays) => finishTickets(trays)],
    ["others ask with other bytes", (trays: Trays) => submitOnce(trays, task("a", "other"))],
    ["old staged files are swept", async (trays: Trays) => sweepAll(trays, RULES)],
  ])("and %s: the task runs once", async (_name, then) => {
    let deaths = 0;
    for (let count = 0; ; count++) {
      const runs = await runsAfterDeath(count, then);
      if (runs === undefined) break;
      deaths++;
      expect(runs, `after ${count} changes`).toBe(1);
    }
    expect(deaths).toBe(8);
  });

  it("and a supervisor that dies after each change while it finishes that: the task runs once", async () => {
    for (let first = 0; first < 8; first++)
      for (let second = 0; second < 6; second++) {
        const runs = await runsAfterDeath(first, (trays) =>
          finishTickets(dyingAfter(trays, second).trays).catch(() => {}),
        );
        expect(runs, `after ${first} and ${second} changes`).toBe(1);
      }
  });
});

describe("a ticket", () => {
  it("is closed before its task runs, also when the file took the place of one that was looked at", async () => {
    const trays = openMailbox();
    await submitOnce(dyingAfter(trays, 7).trays, task("a")).catch(() => {});
    expect(fs.statSync(join(trays.inbox, "a.json")).nlink).toBe(2);
    const name = newSubmission(trays.clock, "a", 1);
    accept(trays, name);
    const claim = claimReady(trays, name, "me");
    if (claim === undefined) throw new Error("no claim");
    expect(readClaim(trays, claim).task.prompt).toBe("x");
    expect(inOnce(trays)).toEqual(["a.note"]);
    expect(fs.statSync(claim.path).nlink).toBe(1);
  });

  it("stays open while another task has its id, and is published when that one is gone", async () => {
    const trays = openMailbox();
    await submitOnce(dyingAfter(trays, 5).trays, task("a", "ours")).catch(() => {});
    await submit(trays, task("a", "a person's"));
    await expect(submitOnce(trays, task("a", "ours"))).rejects.toBeInstanceOf(ErrTaskExists);
    await expect(finishTickets(trays)).rejects.toBeInstanceOf(ErrTaskExists);
    expect(await runAll(trays)).toEqual(["a person's"]);
    expect(await submitOnce(trays, task("a", "ours"))).toBe("submitted");
    expect(await runAll(trays)).toEqual(["ours"]);
  });

  it("whose id another task has got first is never made", async () => {
    const trays = openMailbox();
    await submit(trays, task("a", "a person's"));
    await expect(submitOnce(trays, task("a", "ours"))).rejects.toBeInstanceOf(ErrTaskExists);
    expect(inOnce(trays)).toEqual([]);
    expect(await runAll(trays)).toEqual(["a person's"]);
  });

  it("does not bring a second copy in when a person drops the same task", async () => {
    const trays = openMailbox();
    await submitOnce(dyingAfter(trays, 5).trays, task("a")).catch(() => {});
    await submit(trays, task("a"));
    await finishTickets(trays);
    expect(await runAll(trays)).toEqual(["x"]);
    expect(await submitOnce(trays, task("a"))).toBe("unchanged");
    expect(dropIdentical(trays, "a")).toBe("other");
    expect(await runAll(trays)).toEqual([]);
  });
});

describe("a note", () => {
  const age = (trays: Trays, days: number): void => {
    const atS = Date.now() / 1000 - days * DAY_S;
    for (const file of inOnce(trays)) fs.utimesSync(join(trays.dir, ".once", file), atS, atS);
  };

  it("outlives the record, and is removed a month after it was made", async () => {
    const trays = openMailbox();
    await submitOnce(trays, task("a"));
    await runAll(trays);
    age(trays, 29);
    sweepAll(trays, RULES);
    expect(await submitOnce(trays, task("a"))).toBe("unchanged");
    age(trays, 31);
    sweepAll(trays, RULES);
    expect(inOnce(trays)).toEqual([]);
  });

  it("stays as long as its ticket is open, however old it is", async () => {
    const trays = openMailbox();
    await submitOnce(dyingAfter(trays, 5).trays, task("a")).catch(() => {});
    age(trays, 400);
    sweepAll(trays, RULES);
    expect(inOnce(trays)).toEqual(["a.note", expect.stringMatching(/^a~\w+\.json$/)]);
    await finishTickets(trays);
    expect(await runAll(trays)).toEqual(["x"]);
  });
});

describe("a supervisor", () => {
  it("publishes a ticket that is left, and runs a task whose ticket is open, once each", async () => {
    const pool = newPool();
    const trays = openTrays(pool.mailbox, { durability: "process" });
    const exec = (id: string): Submission => ({
      id,
      bytes: Buffer.from(
        JSON.stringify({ id, exec: ["sh", "-c", `echo ${id} >> ${join(pool.dir, "ran")}`] }),
      ),
    });
    fs.mkdirSync(join(trays.dir, ".once"));
    const deaths = { unnoted: 2, unpublished: 5, open: 6 };
    for (const [id, count] of Object.entries(deaths))
      await submitOnce(dyingAfter(trays, count).trays, exec(id)).catch(() => {});
    expect(fs.readdirSync(trays.inbox)).toEqual(["open.json"]);
    const { code } = await pool.run(["run", "--drain"]);
    expect(code).toBe(0);
    expect(fs.readFileSync(join(pool.dir, "ran"), "utf8").trim().split("\n").sort()).toEqual([
      "open",
      "unnoted",
      "unpublished",
    ]);
    expect(inOnce(trays)).toEqual(["open.note", "unnoted.note", "unpublished.note"]);
  });
});
