/** One task that comes twice: what may go, what waits, what takes whose place. Each of these once lost a task. */
import fs from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { encodeRecord } from "../../src/codec/records.ts";
import { parseName } from "../../src/core/names.ts";
import type { ErrorRecord } from "../../src/core/task.ts";
import { thisPlace } from "../../src/host/identity.ts";
import { Mailbox } from "../../src/library/mailbox.ts";
import { claimAt } from "../../src/mailbox/claim/claim.ts";
import { nodeStorage } from "../../src/mailbox/files/node-storage.ts";
import type { Storage } from "../../src/mailbox/files/storage.ts";
import { openTrays, type Trays } from "../../src/mailbox/files/trays.ts";
import { retry } from "../../src/mailbox/retry/retry.ts";
import { newSettlement, settleAll } from "../../src/mailbox/settle/settle.ts";
import { dropIdentical } from "../../src/mailbox/submit/duplicates.ts";
import { submit, submitAll } from "../../src/mailbox/submit/submit.ts";
import { tempDir } from "../support/temp-dir.ts";

const TEXT = '{"id":"a","prompt":"x"}';
const OTHER = '{"id":"a","prompt":"another"}';
const TASK = { id: "a", bytes: Buffer.from(TEXT) };

function open(storage?: Storage): Trays {
  return openTrays(tempDir(), {
    durability: "process",
    ...(storage === undefined ? {} : { storage }),
  });
}

function put(
  trays: Trays,
  tray: "inbox" | "processing" | "failed",
  name: string,
  text: string,
): void {
  fs.writeFileSync(join(trays[tray], name), text);
}

function filesOf(trays: Trays): string[] {
  return (["inbox", "processing", "outbox", "failed", "tmp"] as const).flatMap((tray) =>
    fs.readdirSync(trays[tray]).map((name) => `${tray}/${name}`),
  );
}

function failedRecord(lease = "s.1.x-1"): string {
  const record: ErrorRecord = {
    task_id: "a",
    status: "failed",
    error: "it failed",
    attempts: 1,
    last_attempt_at: 0,
    failed_at: 0,
    code: "ErrFailed",
    kind: "handler",
    agent_id: "x",
    lease,
    exit_code: 1,
    signal: null,
    run: null,
  };
  return encodeRecord(record, TEXT).toString("utf8");
}

describe("a second file of a task", () => {
  it.each([
    ["waits for a worker", "processing", "a@s.1~ready.json", TEXT],
    ["runs", "processing", "a@s.1~w-x-1.json", TEXT],
    ["has failed", "failed", "a_error.json", failedRecord()],
  ] as const)("goes when the task %s", (_where, tray, name, content) => {
    const trays = open();
    put(trays, tray, name, content);
    put(trays, "inbox", "a.json", TEXT);
    expect(dropIdentical(trays, "a")).toBe("dropped");
    expect(filesOf(trays)).toEqual([`${tray}/${name}`]);
  });

  it("waits while the task is being settled: it may be the retry of that record", () => {
    const trays = open();
    put(trays, "processing", "a@s.1~err-x-1.json", TEXT);
    put(trays, "inbox", "a.json", TEXT);
    expect(dropIdentical(trays, "a")).toBe("unsure");
    expect(filesOf(trays)).toEqual(["inbox/a.json", "processing/a@s.1~err-x-1.json"]);
  });

  it("is another one beside a task with another text, also while that is being settled", () => {
    const trays = open();
    put(trays, "processing", "a@s.1~ok-x-1.json", OTHER);
    put(trays, "failed", "a_error.json", failedRecord().replaceAll('"x"', '"y"'));
    put(trays, "inbox", "a.json", TEXT);
    expect(dropIdentical(trays, "a")).toBe("other");
    expect(fs.existsSync(join(trays.inbox, "a.json"))).toBe(true);
  });

  it("waits while it is the second name of a claim: whoever puts the task back unlinks the first", () => {
    const trays = open();
    put(trays, "processing", "a@s.1~w-x-1.json", TEXT);
    fs.linkSync(join(trays.processing, "a@s.1~w-x-1.json"), join(trays.inbox, "a.json"));
    expect(dropIdentical(trays, "a")).toBe("unsure");
    expect(filesOf(trays)).toEqual(["inbox/a.json", "processing/a@s.1~w-x-1.json"]);
  });

  it("is put back when the first one was retried between the look and the move", () => {
    const trays = open({
      ...nodeStorage,
      rename(from, to) {
        // The retry found it in the inbox, and rests on it.
        if (to.includes("~bad-")) fs.rmSync(join(trays.failed, "a_error.json"), { force: true });
        nodeStorage.rename(from, to);
      },
    });
    put(trays, "failed", "a_error.json", failedRecord());
    put(trays, "inbox", "a.json", TEXT);
    expect(dropIdentical(trays, "a")).toBe("unsure");
    expect(filesOf(trays)).toEqual(["inbox/a.json"]);
  });
});

describe("a file that was taken aside", () => {
  it("waits in the inbox again when whoever took it is dead", async () => {
    const dir = tempDir();
    const trays = openTrays(dir, { durability: "process" });
    put(trays, "processing", "a@s.0~bad-x.json", TEXT);
    let nowMs = 0;
    const clock = { wallMs: () => Date.now(), monotonicMs: () => nowMs, random: () => 0.5 };
    const mailbox = Mailbox.open(dir, { durability: "process", clock });
    await mailbox.recover();
    expect(filesOf(trays)).toEqual(["processing/a@s.0~bad-x.json"]);
    nowMs = 1500;
    await mailbox.recover();
    expect(filesOf(trays)).toEqual(["inbox/a.json"]);
  });
});

describe("a task that is sent while the same one waits in the inbox", () => {
  it("rests on a file with one name", async () => {
    const trays = open();
    put(trays, "inbox", "a.json", TEXT);
    const { ino } = fs.statSync(join(trays.inbox, "a.json"));
    expect(await submit(trays, TASK)).toBe("unchanged");
    expect(fs.statSync(join(trays.inbox, "a.json")).ino).toBe(ino);
    expect(filesOf(trays)).toEqual(["inbox/a.json"]);
  });

  it("takes the place of one that its producer may still take back", async () => {
    const trays = open();
    put(trays, "inbox", "a.json", TEXT);
    fs.linkSync(join(trays.inbox, "a.json"), join(trays.tmp, "a-staged.json.tmp"));
    const { ino } = fs.statSync(join(trays.inbox, "a.json"));
    expect(await submit(trays, TASK)).toBe("unchanged");
    expect(fs.statSync(join(trays.inbox, "a.json")).ino).not.toBe(ino);
    expect(filesOf(trays)).toEqual(["inbox/a.json", "tmp/a-staged.json.tmp"]);
  });

  it("is the same for a retry: what it retries stays, whatever that producer does", async () => {
    const trays = open();
    put(trays, "failed", "a_error.json", failedRecord());
    let hasCome = false;
    trays.storage = {
      ...nodeStorage,
      link(from, to) {
        if (!hasCome && to === join(trays.inbox, "a.json")) {
          hasCome = true;
          put(trays, "inbox", "a.json", TEXT);
          fs.linkSync(to, join(trays.tmp, "a-staged.json.tmp"));
        }
        nodeStorage.link(from, to);
      },
    };
    await retry(trays, "a");
    const [waiting, staged] = [join(trays.inbox, "a.json"), join(trays.tmp, "a-staged.json.tmp")];
    expect(fs.readFileSync(waiting, "utf8").trim()).toBe(TEXT);
    expect(fs.statSync(waiting).ino).not.toBe(fs.statSync(staged).ino);
    expect(filesOf(trays)).toEqual(["inbox/a.json", "tmp/a-staged.json.tmp"]);
  });

  it("does not take another file's name: that is refused", async () => {
    const trays = open();
    put(trays, "inbox", "a.json", OTHER);
    const [outcome] = await submitAll(trays, [TASK]);
    expect(outcome).toMatchObject({ outcome: "refused", error: { code: "ErrTaskExists" } });
    expect(fs.readFileSync(join(trays.inbox, "a.json"), "utf8")).toBe(OTHER);
  });
});

it("a retry does not take the marker of the settlement that it retries for a later run", async () => {
  const trays = open();
  put(trays, "failed", "a_error.json", failedRecord("s.1.x-1"));
  put(trays, "processing", "a@s.1~err-x-1.json", TEXT);
  trays.storage = {
    ...nodeStorage,
    link(from, to) {
      if (to === join(trays.inbox, "a.json")) put(trays, "inbox", "a.json", OTHER);
      nodeStorage.link(from, to);
    },
  };
  await expect(retry(trays, "a")).rejects.toMatchObject({ code: "ErrTaskExists" });
  const kept = fs.readdirSync(trays.failed);
  expect(kept).toEqual([expect.stringMatching(/^a~.+_error\.json$/)]);
  expect(fs.readFileSync(join(trays.failed, kept[0] ?? ""), "utf8")).toContain(TEXT);
});

it.each(["stage", "commit", "link", "marker"])(
  "a settlement goes on at its %s when the mailbox was away, and is back",
  async (step) => {
    const trays = open();
    const me = `${thisPlace()}-1-1-1`;
    put(trays, "processing", `a@s.1~w-${me}.json`, TEXT);
    const claim = claimAt(trays, { id: "a", submission: "s", attempt: 1, stage: "w", token: me });
    const settlement = newSettlement(claim, "failed", Buffer.from(failedRecord(`s.1.${me}`)), me);
    const away = `${trays.dir}.away`;
    let isAway = false;
    const leaveAt = (here: string): void => {
      if (here === step && !isAway) fs.renameSync(trays.dir, away);
      if (here === step) isAway = true;
    };
    trays.storage = {
      ...nodeStorage,
      create(path, bytes) {
        leaveAt("stage");
        nodeStorage.create(path, bytes);
      },
      rename(from, to) {
        leaveAt("commit");
        nodeStorage.rename(from, to);
      },
      link(from, to) {
        leaveAt("link");
        nodeStorage.link(from, to);
      },
      unlink(path) {
        leaveAt("marker");
        nodeStorage.unlink(path);
      },
      // The directory that the mailbox lies in went with it.
      makeDir: () => {
        throw Object.assign(new Error("made up"), { code: "ENOENT" });
      },
    };
    await settleAll(trays, [settlement], () => {});
    expect(settlement.error).toBeDefined();
    expect(fs.existsSync(trays.dir)).toBe(false);
    fs.renameSync(away, trays.dir);
    await settleAll(trays, [settlement], () => {});
    expect(settlement).toMatchObject({ outcome: "settled", phase: "done" });
    expect(filesOf(trays)).toEqual(["failed/a_error.json"]);
  },
);

it("a record that was taken away before the disk had synced its directory is not published again", async () => {
  const trays: Trays = { ...open(), durability: "power" };
  const me = `${thisPlace()}-1-1-1`;
  put(trays, "processing", `a@s.1~w-${me}.json`, TEXT);
  const claim = claimAt(trays, { id: "a", submission: "s", attempt: 1, stage: "w", token: me });
  const settlement = newSettlement(claim, "failed", Buffer.from(failedRecord(`s.1.${me}`)), me);
  trays.storage = {
    ...nodeStorage,
    syncDirs: async () => {
      fs.rmSync(join(trays.failed, "a_error.json"));
      throw Object.assign(new Error("made up"), { code: "EIO" });
    },
  };
  await settleAll(trays, [settlement], () => {});
  expect(settlement.error).toBeDefined();
  trays.storage = nodeStorage;
  await settleAll(trays, [settlement], () => {});
  expect(settlement).toMatchObject({ outcome: "settled", phase: "done" });
  expect(filesOf(trays)).toEqual([]);
});

describe("a settlement whose staged record was swept after the commit", () => {
  const me = `${thisPlace()}-1-1-1`;
  const ready = { id: "a", submission: "s", attempt: 1, stage: "w", token: me } as const;

  function settling(trays: Trays): ReturnType<typeof newSettlement> {
    put(trays, "processing", `a@s.1~w-${me}.json`, TEXT);
    const claim = claimAt(trays, ready);
    return newSettlement(claim, "failed", Buffer.from(failedRecord(`s.1.${me}`)), me);
  }

  function sweepAtLink(trays: Trays, also: () => void = () => {}): void {
    let isSwept = false;
    trays.storage = {
      ...nodeStorage,
      link(from, to) {
        if (!isSwept) {
          isSwept = true;
          fs.rmSync(from);
          also();
        }
        nodeStorage.link(from, to);
      },
    };
  }

  it("is staged and committed anew under another marker", async () => {
    const trays = open();
    const settlement = settling(trays);
    sweepAtLink(trays);
    await settleAll(trays, [settlement], () => {});
    expect(settlement).toMatchObject({ outcome: "settled", phase: "done" });
    expect(parseName(settlement.marker)?.token).toBe(`${me}r`);
    expect(filesOf(trays)).toEqual(["failed/a_error.json"]);
  });

  it.each(["failed", ".tmp"])("makes %s again where that was deleted, too", async (deleted) => {
    const trays = open();
    const settlement = settling(trays);
    let isDeleted = false;
    trays.storage = {
      ...nodeStorage,
      link(from, to) {
        if (!isDeleted) fs.rmSync(join(trays.dir, deleted), { recursive: true });
        isDeleted = true;
        nodeStorage.link(from, to);
      },
    };
    await settleAll(trays, [settlement], () => {});
    expect(settlement).toMatchObject({ outcome: "settled", phase: "done" });
    expect(filesOf(trays)).toEqual(["failed/a_error.json"]);
  });

  it("is lost when somebody has begun to run the task again", async () => {
    const trays = open();
    const settlement = settling(trays);
    sweepAtLink(trays);
    const storage = trays.storage;
    trays.storage = {
      ...storage,
      create(path, bytes) {
        // Between the new record and the new commit.
        if (path.includes(`${me}r`))
          fs.renameSync(
            join(trays.processing, `a@s.1~err-${me}.json`),
            join(trays.processing, "a@s.2~ready.json"),
          );
        nodeStorage.create(path, bytes);
      },
    };
    await settleAll(trays, [settlement], () => {});
    expect(settlement).toMatchObject({ outcome: "fenced", phase: "done" });
    expect(filesOf(trays)).toEqual(["processing/a@s.2~ready.json"]);
  });
});

it("a disk that does not give the first one now is no evidence: the second one stays", () => {
  const trays = open({
    ...nodeStorage,
    read(path, bytesMax) {
      if (String(path).includes("~ready"))
        throw Object.assign(new Error("EIO: a bad sector"), { code: "EIO" });
      return nodeStorage.read(path, bytesMax);
    },
  });
  put(trays, "processing", "a@s.1~ready.json", TEXT);
  put(trays, "inbox", "a.json", TEXT);
  expect(() => dropIdentical(trays, "a")).toThrow("EIO");
  expect(filesOf(trays)).toEqual(["inbox/a.json", "processing/a@s.1~ready.json"]);
});
