/** Bugs that the machine in `every-step` found, each with a case of its own that needs no luck and no kill. */
import { spawn } from "node:child_process";
import fs from "node:fs";
import { join } from "node:path";
import { describe, expect, it, test } from "vitest";
import { decodeRecord, encodeRecord } from "../../src/codec/records.ts";
import { type ProcessingName, parseName } from "../../src/core/names.ts";
import { DEFAULT_SETTINGS } from "../../src/core/settings.ts";
import { stateTree } from "../../src/core/state-tree.ts";
import type { ErrorRecord, ResultRecord } from "../../src/core/task.ts";
import { ownerSequence, thisPlace } from "../../src/host/identity.ts";
import { LEASE_VARIABLE } from "../../src/host/process-tree.ts";
import { recordSettled } from "../../src/journal/attempts.ts";
import { Telemetry } from "../../src/journal/telemetry.ts";
import { claimAt } from "../../src/mailbox/claim/claim.ts";
import { enqueueCommand } from "../../src/mailbox/commands/command-queue.ts";
import { nodeStorage } from "../../src/mailbox/files/node-storage.ts";
import type { Storage, Walk } from "../../src/mailbox/files/storage.ts";
import { openTrays, type Trays } from "../../src/mailbox/files/trays.ts";
import { finishRetry, retry } from "../../src/mailbox/retry/retry.ts";
import { finishQuarantine } from "../../src/mailbox/settle/quarantine.ts";
import { newSettlement, type Settlement, settleAll } from "../../src/mailbox/settle/settle.ts";
import { findTaskText } from "../../src/mailbox/submit/duplicates.ts";
import { applyCommand, makeCommandTable } from "../../src/supervisor/control/apply-command.ts";
import { CommandInbox, type CommandMemory } from "../../src/supervisor/control/command-inbox.ts";
import { Parts } from "../../src/supervisor/environment/parts.ts";
import { makeTaskRescue } from "../../src/supervisor/maintenance/record-recovered.ts";
import { TaskRecovery } from "../../src/supervisor/maintenance/task-recovery.ts";
import { AcceptedTasks } from "../../src/supervisor/queue/accepted-tasks.ts";
import { readAttempt } from "../../src/worker/attempt.ts";
import { decideAttempt } from "../../src/worker/decide.ts";
import { tempDir } from "../support/temp-dir.ts";

const DEAD = `${thisPlace()}-zzzzz-1-1`;
const TEXT = '{"id":"a","prompt":"x"}';

function failedRecord(): Buffer {
  const record: ErrorRecord = {
    task_id: "a",
    status: "failed",
    error: "it failed",
    attempts: 3,
    last_attempt_at: 0,
    failed_at: 0,
    code: "ErrFailed",
    kind: "handler",
    agent_id: "x",
    lease: "s.3.x-1",
    exit_code: 1,
    signal: null,
    run: null,
  };
  return encodeRecord(record, TEXT);
}

function resultRecord(): Buffer {
  const record: ResultRecord = {
    task_id: "a",
    status: "completed",
    verdict: "unknown",
    verdict_reason: "",
    output: null,
    duration_ms: 1,
    completed_at: 0,
    attempts: 1,
    agent_id: "x",
    lease: `s.1.${DEAD}`,
    exit_code: 0,
    run: null,
  };
  return encodeRecord(record, TEXT);
}

function recoveryOf(dir: string, trays: Trays, onError: (error: unknown) => void): TaskRecovery {
  const tree = stateTree(dir);
  const journals = { events: tree.events, leases: tree.leases };
  const telemetry = new Telemetry(journals, "test", 60_000, trays.clock);
  const scope = { tree, trays, settings: DEFAULT_SETTINGS, telemetry };
  const recoverer = makeTaskRescue(scope, {
    onReady: () => {},
    onSettled: () => {},
    onSkipped: () => {},
    onFailed: () => {},
    onConflict: () => {},
    onUnkillable: () => {},
  });
  return new TaskRecovery(recoverer, 60_000, onError);
}

async function recoverOnce(dir: string, trays: Trays): Promise<void> {
  const recovery = recoveryOf(dir, trays, (error) => {
    throw error;
  });
  await recovery.round(recovery.list(), true);
}

test("a worker that dies in its last attempt, before its journal lines, leaves a task with all four events", async () => {
  const dir = tempDir();
  const tree = stateTree(dir);
  const trays = openTrays(tree.mailbox, { durability: "process" });
  fs.writeFileSync(join(trays.processing, `a@s.3~w-${DEAD}.json`), TEXT);
  await recoverOnce(dir, trays);
  const events = fs
    .readFileSync(tree.events, "utf8")
    .trimEnd()
    .split("\n")
    .map((line) => (JSON.parse(line) as { event: string }).event);
  expect(events).toEqual(["assigned", "started", "failed", "completed"]);
});

it.each(["before", "after"])(
  "a settler that dies %s it has published beside a stranger's file leaves one record there, and the news of it",
  async (when) => {
    const dir = tempDir();
    const tree = stateTree(dir);
    const trays = openTrays(tree.mailbox, { durability: "process" });
    const marker = `a@s.1~ok-${DEAD}.json`;
    fs.writeFileSync(join(trays.processing, marker), TEXT);
    fs.writeFileSync(join(trays.tmp, marker), resultRecord());
    const final = join(trays.outbox, "a_result.json");
    fs.mkdirSync(final);
    const beside = join(trays.outbox, "a~s_result.json");
    if (when === "after") fs.linkSync(join(trays.tmp, marker), beside);
    await recoverOnce(dir, trays);
    expect(fs.readdirSync(trays.outbox)).toEqual(["a_result.json", "a~s_result.json"]);
    expect(fs.statSync(final).isDirectory()).toBe(true);
    expect(fs.readFileSync(beside)).toEqual(resultRecord());
    expect([...fs.readdirSync(trays.processing), ...fs.readdirSync(trays.tmp)]).toEqual([]);
    const events = fs.readFileSync(tree.events, "utf8").trimEnd().split("\n");
    expect(events.map((line) => JSON.parse(line) as object)).toEqual([
      expect.objectContaining({
        event: "conflict",
        task_id: "a",
        kept_as: "outbox/a~s_result.json",
      }),
    ]);
    // Nobody comes a second time.
    await recoverOnce(dir, trays);
    expect(fs.readdirSync(trays.outbox)).toHaveLength(2);
  },
);

describe("a settler that stands still after its commit, while recovery ends what it had begun", () => {
  it.each(["link", "syncDirs"] as const)("at %s, writes no journal line again", async (call) => {
    const dir = tempDir();
    const tree = stateTree(dir);
    let stoodStillMs = 0;
    const clock = {
      wallMs: () => Date.now(),
      monotonicMs: () => performance.now() + stoodStillMs,
      random: Math.random,
    };
    const trays = openTrays(tree.mailbox, { durability: "power", clock });
    const standStill = async (): Promise<void> => {
      stoodStillMs += 60_000;
      await recoverOnce(dir, openTrays(tree.mailbox, { durability: "process" }));
    };
    const storage: Storage = {
      ...nodeStorage,
      link: (from, to) => {
        if (call === "link" && stoodStillMs === 0) void standStill();
        nodeStorage.link(from, to);
      },
      syncDirs: async (paths) => {
        await nodeStorage.syncDirs(paths);
        if (call === "syncDirs") await standStill();
      },
    };
    const file = `a@s.1~w-${DEAD}.json`;
    fs.writeFileSync(join(trays.processing, file), TEXT);
    const claim = claimAt(trays, parseName(file) as ProcessingName);
    const settlement = newSettlement(claim, "completed", resultRecord(), DEAD);
    const telemetry = new Telemetry(
      { events: tree.events, leases: tree.leases },
      "settler",
      60_000,
      clock,
    );
    await settleAll({ ...trays, storage }, [settlement], ([settled]) => {
      if (settled === undefined) return;
      const details = {
        isCompleted: true,
        acquiredAtMs: 0,
        pid: process.pid,
        durationMs: 1,
        error: null,
        kind: null,
      };
      const subject = { task_id: "a", agent_id: "x", attempt: 1, lease: `s.1.${DEAD}` };
      recordSettled(telemetry, subject, details, settled.mayBeRecorded);
    });
    telemetry.close();
    expect(settlement).toMatchObject({ outcome: "settled", phase: "done" });
    const journals = [tree.events, tree.leases].map((path) => fs.readFileSync(path, "utf8"));
    expect(journals[0]?.match(/"event":"completed"/g)).toHaveLength(1);
    expect(journals[1]?.match(/"status":"released"/g)).toHaveLength(1);
    expect(fs.readdirSync(trays.outbox)).toEqual(["a_result.json"]);
    expect([...fs.readdirSync(trays.processing), ...fs.readdirSync(trays.tmp)]).toEqual([]);
  });
});

test("a retry that waits for the disk leaves one name in the inbox, so that nobody refuses it as a second link", async () => {
  const links: number[] = [];
  const trays = openTrays(tempDir(), {
    durability: "power",
    storage: {
      ...nodeStorage,
      syncDirs: (dirs) => {
        if (dirs.includes(trays.inbox)) links.push(fs.statSync(join(trays.inbox, "a.json")).nlink);
        return Promise.resolve();
      },
    },
  });
  fs.writeFileSync(join(trays.failed, "a_error.json"), failedRecord());
  await retry(trays, "a");
  expect(links).toEqual([1]);
});

test("a retry under way is not the task itself: what it put into the inbox is no duplicate of it", () => {
  const trays = openTrays(tempDir(), { durability: "process" });
  fs.writeFileSync(join(trays.processing, "a@s.0~again-x.json"), failedRecord());
  fs.writeFileSync(join(trays.processing, "a@t.0~bad-x.json"), "rubbish");
  expect(findTaskText(trays, "a")).toBeUndefined();
  fs.writeFileSync(join(trays.processing, "a@u.1~ready.json"), TEXT);
  expect(findTaskText(trays, "a")).toBe(TEXT);
});

test("a quarantine whose staged record is torn is finished with a whole one", async () => {
  const trays = openTrays(tempDir(), { durability: "process" });
  const marker = { id: "a", submission: "s", attempt: 0, stage: "bad", token: "x" } as const;
  fs.writeFileSync(join(trays.processing, "a@s.0~bad-x.json"), "rubbish");
  fs.writeFileSync(join(trays.tmp, "a@s.0~bad-x.json"), "");
  await finishQuarantine(trays, marker);
  const record = decodeRecord(fs.readFileSync(join(trays.failed, "a_error.json")));
  expect(record?.record.task_id).toBe("a");
  expect(fs.readFileSync(join(trays.failed, "a~x.json"), "utf8")).toBe("rubbish");
  expect(fs.readdirSync(trays.tmp)).toEqual([]);
});

test("two processes that finish one refusal, both without its reason, leave one record", async () => {
  const dir = tempDir();
  const trays = openTrays(dir, { durability: "process" });
  const marker = { id: "a", submission: "s", attempt: 0, stage: "bad", token: "x" } as const;
  fs.writeFileSync(join(trays.processing, "a@s.0~bad-x.json"), "rubbish");
  const others: Promise<string>[] = [];
  const slow: Trays = {
    ...trays,
    storage: {
      ...nodeStorage,
      create(path, bytes) {
        // It was stopped here, until the other one was through.
        if (path.endsWith(".refusal.tmp")) others.push(finishQuarantine(trays, marker));
        nodeStorage.create(path, bytes);
      },
    },
  };
  expect(await finishQuarantine(slow, marker)).toBe("a");
  expect(await Promise.all(others)).toEqual(["a"]);
  expect(fs.readdirSync(trays.failed).toSorted()).toEqual(["a_error.json", "a~x.json"]);
  expect(fs.readdirSync(trays.tmp)).toEqual([]);
});

test("a result that is published long after its commit is not old, so that retention leaves it to its readers", async () => {
  const dir = tempDir();
  const trays = openTrays(stateTree(dir).mailbox, { durability: "process" });
  const file = `a@s.1~ok-${DEAD}.json`;
  fs.writeFileSync(join(trays.processing, file), TEXT);
  fs.writeFileSync(join(trays.tmp, file), resultRecord());
  const longAgo = Date.now() / 1000 - 40 * 24 * 3600;
  fs.utimesSync(join(trays.tmp, file), longAgo, longAgo);
  await recoverOnce(dir, trays);
  const { mtimeMs } = fs.statSync(join(trays.outbox, "a_result.json"));
  expect(Date.now() - mtimeMs).toBeLessThan(60_000);
});

test("a retry of a refused file that died before its last step leaves no record of a refusal behind", async () => {
  const trays = openTrays(tempDir(), { durability: "process" });
  const record = { task_id: "a", status: "failed", file: "failed/a~x.json" };
  fs.writeFileSync(join(trays.processing, "a@s.0~again-x.json"), JSON.stringify(record));
  fs.writeFileSync(join(trays.inbox, "a.json"), TEXT);
  await finishRetry(trays, { id: "a", submission: "s", attempt: 0, stage: "again", token: "x" });
  expect(fs.readdirSync(trays.processing)).toEqual([]);
  expect(fs.readdirSync(trays.failed)).toEqual([]);
  expect(fs.readFileSync(join(trays.inbox, "a.json"), "utf8")).toBe(TEXT);
});

test("a task whose file cannot be read for a moment waits: a record without the task would be all that is left of it", () => {
  const trays = openTrays(tempDir(), {
    durability: "process",
    storage: {
      ...nodeStorage,
      read: () => {
        throw Object.assign(new Error("EMFILE: too many open files"), { code: "EMFILE" });
      },
    },
  });
  const name = { id: "a", submission: "s", attempt: 1, stage: "w", token: "x-1" } as const;
  const tools = { trays, settings: DEFAULT_SETTINGS, runsDir: "", stateDir: "" } as never;
  const attempt = readAttempt(tools, claimAt(trays, name), "a@s.1~ready.json", true);
  expect(attempt.outcome?.kind).toBe("deferred");
});

test("a recovery that committed and could not publish comes for it again, though its owner lives", async () => {
  const dir = tempDir();
  let isBroken = true;
  const trays = openTrays(stateTree(dir).mailbox, {
    durability: "process",
    storage: {
      ...nodeStorage,
      link: (from, to) => {
        if (isBroken) throw Object.assign(new Error("EIO: i/o error"), { code: "EIO" });
        nodeStorage.link(from, to);
      },
    },
  });
  fs.writeFileSync(join(trays.processing, `a@s.3~w-${DEAD}.json`), TEXT);
  const errors: unknown[] = [];
  const recovery = recoveryOf(dir, trays, (error) => errors.push(error));
  await recovery.round(recovery.list());
  expect(errors).toHaveLength(1);
  isBroken = false;
  await recovery.round(recovery.list());
  expect(fs.readdirSync(trays.failed)).toEqual(["a_error.json"]);
  expect(fs.readdirSync(trays.processing)).toEqual([]);
});

test("a task that was to be cancelled before its time, by a supervisor that died, still waits for its time", async () => {
  const dir = tempDir();
  const trays = openTrays(stateTree(dir).mailbox, { durability: "process" });
  const dueS = Math.floor(Date.now() / 1000) + 3600;
  fs.writeFileSync(
    join(trays.processing, `a@s.1~w-${DEAD}.json`),
    `{"id":"a","prompt":"x","not_before":${dueS}}`,
  );
  await recoverOnce(dir, trays);
  const { mtimeMs } = fs.statSync(join(trays.processing, "a@s.2~ready.json"));
  expect(mtimeMs).toBeGreaterThan((dueS - 5) * 1000);
});

test("a task that was to be put back by one who died over it has used up no attempt, and its program is ended", async () => {
  const dir = tempDir();
  const trays = openTrays(stateTree(dir).mailbox, { durability: "process" });
  // In its last attempt: with the attempt used up it would have failed.
  fs.writeFileSync(join(trays.processing, `a@s.3~w-${DEAD.replace(/-1$/, "-C1")}.json`), TEXT);
  const program = spawn("sleep", ["600"], {
    env: { ...process.env, [LEASE_VARIABLE]: `s.3.${DEAD}` },
    stdio: "ignore",
  });
  const ended = new Promise((resolve) => {
    program.once("exit", (_code, signal) => resolve(signal));
  });
  await recoverOnce(dir, trays);
  expect(fs.readdirSync(trays.processing)).toEqual(["a@s.3~ready.json"]);
  expect(await ended).toBe("SIGKILL");
});

describe("a task that was replaced by rubbish after it was accepted", () => {
  const RUBBISH = "no task at all";

  /** The record says where the bytes are, and they are there; nothing else is left. */
  function expectKept(trays: Trays, kind: string): void {
    const bytes = fs.readFileSync(join(trays.failed, "a_error.json"));
    const record = decodeRecord(bytes)?.record as ErrorRecord | undefined;
    expect(record).toMatchObject({
      kind,
      error: /the claimed file is kept as/,
      file: /^failed\/a~/,
    });
    expect(fs.readFileSync(join(trays.dir, record?.file ?? ""), "utf8")).toBe(RUBBISH);
    expect(fs.readdirSync(trays.failed)).toHaveLength(2);
    expect([...fs.readdirSync(trays.processing), ...fs.readdirSync(trays.tmp)]).toEqual([]);
  }

  test("is kept when a worker claims it, and when that one dies over it", async () => {
    for (const diesAfter of ["never", "stage", "commit", "link"]) {
      const dir = tempDir();
      const trays = openTrays(stateTree(dir).mailbox, { durability: "process" });
      const claim = claimAt(trays, parseName(`a@s.1~w-${DEAD}.json`) as ProcessingName);
      fs.writeFileSync(claim.path, RUBBISH);
      const tools = { trays, settings: DEFAULT_SETTINGS } as never;
      const attempt = readAttempt(tools, claim, "", true);
      decideAttempt(tools, attempt);
      const settlement = attempt.settlement as Settlement;
      if (diesAfter === "never") await settleAll(trays, [settlement], () => {});
      else {
        fs.writeFileSync(join(trays.tmp, settlement.marker), settlement.record);
        if (diesAfter !== "stage")
          fs.renameSync(claim.path, join(trays.processing, settlement.marker));
        if (diesAfter === "link")
          fs.linkSync(join(trays.tmp, settlement.marker), join(trays.failed, "a_error.json"));
        await recoverOnce(dir, trays);
      }
      if (diesAfter === "stage") {
        // It runs again, and is refused then.
        expect(fs.readdirSync(trays.processing)).toEqual(["a@s.2~ready.json"]);
      } else expectKept(trays, "invalid");
    }
  });

  test("is kept when its worker dies in its last attempt", async () => {
    const dir = tempDir();
    const trays = openTrays(stateTree(dir).mailbox, { durability: "process" });
    fs.writeFileSync(join(trays.processing, `a@s.3~w-${DEAD}.json`), RUBBISH);
    await recoverOnce(dir, trays);
    expectKept(trays, "lease_expired");
    // And comes back with a retry, to be refused with a reason when it is looked at.
    await retry(trays, "a");
    expect(fs.readFileSync(join(trays.inbox, "a.json"), "utf8")).toBe(RUBBISH);
    expect(fs.readdirSync(trays.failed)).toEqual([]);
  });
});

test("a final cancel whose task goes on elsewhere meanwhile cancels it there, and no drain waits for it", async () => {
  const tree = stateTree(tempDir());
  const trays = openTrays(tree.mailbox, { durability: "process" });
  const held = join(trays.processing, `a@s.1~w-${DEAD}.json`);
  fs.writeFileSync(held, TEXT);
  const forgotten: string[] = [];
  const context = {
    env: {
      tree,
      trays,
      settings: DEFAULT_SETTINGS,
      telemetry: { event: () => {}, lease: () => {}, flush: () => true },
      facts: { emit: () => {} },
    },
    newOwner: () => "x-1",
    parts: new Parts(),
    queue: {
      backlog: { remove: (id: string) => forgotten.push(id) },
      accepted: new AcceptedTasks(),
      // Its worker is dead: a recovery puts it back while the cancel waits for somebody to let go.
      pool: {
        workers: {
          ownPrefixes: () => ({ has: () => true }),
          tellAll: () => fs.renameSync(held, join(trays.processing, "a@s.2~ready.json")),
        },
      },
    },
  };
  const command = { id: "c", command: "cancel", args: { node: "a", final: true } };
  const inHand = { command, nonce: "n", isAgain: false, noteSubject: () => Promise.resolve() };
  await applyCommand(makeCommandTable(), context as never, inHand as never);
  expect(fs.readdirSync(trays.failed)).toEqual(["a_error.json"]);
  expect(fs.readdirSync(trays.processing)).toEqual([]);
  expect(forgotten).toContain("a");
});

test("a committed task whose record cannot be read for a moment is published later, and not run again", async () => {
  const dir = tempDir();
  const file = `a@s.1~ok-${DEAD}.json`;
  let isBroken = true;
  const trays = openTrays(stateTree(dir).mailbox, {
    durability: "process",
    storage: {
      ...nodeStorage,
      read: (path, bytesMax) => {
        if (isBroken && path.includes(".tmp"))
          throw Object.assign(new Error("EIO: i/o error"), { code: "EIO" });
        return nodeStorage.read(path, bytesMax);
      },
    },
  });
  fs.writeFileSync(join(trays.processing, file), TEXT);
  fs.writeFileSync(join(trays.tmp, file), resultRecord());
  const recovery = recoveryOf(dir, trays, () => {});
  await recovery.round(recovery.list());
  expect(fs.readdirSync(trays.processing)).toEqual([file]);
  isBroken = false;
  await recovery.round(recovery.list());
  expect(fs.readdirSync(trays.outbox)).toEqual(["a_result.json"]);
});

test("a last attempt whose task cannot be read for a moment is settled later, with its task", async () => {
  const dir = tempDir();
  let isBroken = true;
  const trays = openTrays(stateTree(dir).mailbox, {
    durability: "process",
    storage: {
      ...nodeStorage,
      read: (path, bytesMax) => {
        if (isBroken) throw Object.assign(new Error("EMFILE: too many"), { code: "EMFILE" });
        return nodeStorage.read(path, bytesMax);
      },
    },
  });
  fs.writeFileSync(join(trays.processing, `a@s.3~w-${DEAD}.json`), TEXT);
  const recovery = recoveryOf(dir, trays, () => {});
  await recovery.round(recovery.list());
  expect(fs.readdirSync(trays.failed)).toEqual([]);
  isBroken = false;
  await recovery.round(recovery.list());
  const record = decodeRecord(fs.readFileSync(join(trays.failed, "a_error.json")));
  expect(record?.taskText).toBe(TEXT);
});

/** What a pool remembers that was told nothing. */
const NO_MEMORY: CommandMemory = {
  isApplied: () => false,
  keepApplied: () => {},
  lastWord: () => undefined,
  noteLastWord: () => {},
  forgetLastWords: () => {},
  save: () => true,
};

test("a command whose change of control.json the disk refuses is acknowledged only once that is saved", async () => {
  const control = openTrays(tempDir(), { durability: "process" });
  let isSavable = false;
  const faults: unknown[] = [];
  const commands = new CommandInbox(control, ownerSequence(), [], {
    apply: () => ({ paused: true }),
    control: { ...NO_MEMORY, save: () => isSavable },
    onError: (error) => faults.push(error),
  });
  const { id } = await enqueueCommand(control, { command: "pause" });
  commands.work();
  commands.work();
  expect(fs.readdirSync(control.outbox)).toEqual([]);
  expect(commands.isBusy).toBe(true);
  isSavable = true;
  commands.work();
  expect(fs.readdirSync(control.outbox)).toEqual([`${id}_result.json`]);
  expect(faults).toEqual([]);
});

/** Each piece of a listing takes at least so long. */
function withSlowWalk(trays: Trays, pieceMs: number): Trays {
  const walk = (dir: string): Walk => {
    const real = trays.storage.walk(dir);
    const next = (max: number): string[] => {
      for (const endMs = performance.now() + pieceMs; performance.now() < endMs; );
      return real.next(max);
    };
    return { next, close: () => real.close() };
  };
  return { ...trays, storage: { ...trays.storage, walk } };
}

test.each([
  ["", 0],
  [", also while the inbox is listed in several pieces", 5],
])(
  "of many commands the one that came first is taken first, and all in turn%s",
  async (_, pieceMs) => {
    const control = withSlowWalk(openTrays(tempDir(), { durability: "process" }), pieceMs);
    const count = 1000;
    for (let n = 0; n < count; n++) {
      const path = join(control.inbox, `c${count - 1 - n}.json`);
      fs.writeFileSync(path, '{"command":"cancel","args":{"node":"t"}}');
      // Moved here it has kept the time at which it was written.
      fs.utimesSync(path, count - n, count - n);
    }
    const arrived = fs
      .readdirSync(control.inbox)
      .map((name) => ({ name, arrivedMs: fs.statSync(join(control.inbox, name)).ctimeMs }))
      .sort((a, b) => a.arrivedMs - b.arrivedMs || (a.name < b.name ? -1 : 1));
    const applied: string[] = [];
    const commands = new CommandInbox(control, ownerSequence(), [], {
      apply: ({ command }) => {
        applied.push(`${command.id}.json`);
        return {};
      },
      control: NO_MEMORY,
      onError: (error) => {
        throw error;
      },
    });
    do {
      commands.work();
      // Their answers are written meanwhile.
      await new Promise(setImmediate);
    } while (commands.relookMs !== undefined);
    expect(applied).toEqual(arrived.map(({ name }) => name));
  },
);
