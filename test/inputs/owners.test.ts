/** Whose file it is: judged on the very bytes that are run, because names change hands between a look and a claim. */
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import fs from "node:fs";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import type { ProcessingName } from "../../src/core/names.ts";
import type { ErrorRecord } from "../../src/core/task.ts";
import { thisPlace } from "../../src/host/identity.ts";
import { claimNextCommand, enqueueCommand, Mailbox, openTrays } from "../../src/index.ts";
import { claimAt } from "../../src/mailbox/claim/claim.ts";
import { nodeStorage } from "../../src/mailbox/files/node-storage.ts";
import type { Storage } from "../../src/mailbox/files/storage.ts";
import { newPool, type Pool, QUICK_CONFIG, readJson } from "../support/pool.ts";
import { programPath } from "../support/programs.ts";
import { takeSome } from "../support/take-some.ts";
import { tempDir } from "../support/temp-dir.ts";
import { waitFor } from "../support/wait-for.ts";
import { IS_WHOLE } from "../support/walks.ts";

takeSome();

const STRANGER = 65_534;
const isRoot = process.getuid?.() === 0;

const python = spawnSync("python3", ["-c", "import ctypes; ctypes.CDLL(None).renameat2"]);

/** Puts a file of another user into `processing/`, as a swap between a look and the claim does. */
function plant(dir: string, name: Partial<ProcessingName> & { id: string }, text: string): void {
  const whole: ProcessingName = { submission: "s", attempt: 1, stage: "ready", token: "", ...name };
  const { path } = claimAt(openTrays(dir, { durability: "process" }), whole);
  fs.writeFileSync(path, text);
  fs.chownSync(path, STRANGER, STRANGER);
}

/** The files in `failed/` that are no records: what was refused, byte for byte. */
function keptIn(dir: string): string[] {
  return fs
    .readdirSync(join(dir, "failed"))
    .filter((name) => !name.endsWith("_error.json"))
    .map((name) => fs.readFileSync(join(dir, "failed", name), "utf8"));
}

describe.skipIf(!isRoot)("a file of an owner who is not allowed, found after the claim", () => {
  it("is refused by a worker, as a task and as a batch, with its bytes kept", async () => {
    const pool = newPool();
    const evil = (id: string): string => JSON.stringify({ exec: ["touch", join(pool.dir, id)] });
    plant(pool.mailbox, { id: "task" }, evil("task"));
    plant(pool.mailbox, { id: "batch", isBatch: true }, `${evil("batch")}\n`);
    await pool.start();
    for (const id of ["task", "batch"])
      expect(await pool.error(id)).toMatchObject({
        kind: "invalid",
        error: expect.stringContaining(`belongs to uid ${STRANGER}`),
      });
    expect(keptIn(pool.mailbox).sort()).toEqual([`${evil("batch")}\n`, evil("task")].sort());
    expect(fs.readdirSync(pool.dir)).not.toContain("task");
    expect(fs.readdirSync(pool.dir)).not.toContain("batch");
    expect(fs.readdirSync(pool.processing)).toEqual([]);
  });

  it("is run when the settings allow its owner", async () => {
    const pool = newPool({ config: `${QUICK_CONFIG}uids: [${STRANGER}]\n` });
    plant(pool.mailbox, { id: "task" }, JSON.stringify({ exec: ["echo", "fine"] }));
    await pool.start();
    expect((await pool.result("task")).output).toBe("fine\n");
  });

  it("is refused by a supervisor, as a command, with its bytes kept", async () => {
    const pool = newPool();
    const control = join(pool.state, "control");
    const evil = '{"command":"set-workers","args":{"workers":7}}';
    // Claimed by a supervisor that has died.
    plant(control, { id: "c", stage: "w", token: `${thisPlace()}-zzzzz-1-1` }, evil);
    await pool.start();
    const record = await waitFor(
      () => readJson<ErrorRecord>(join(control, "failed", "c_error.json")),
      { what: "the refusal" },
    );
    expect(record).toMatchObject({
      code: "ErrInvalidCommand",
      error: expect.stringContaining(`belongs to uid ${STRANGER}`),
    });
    await waitFor(() => fs.readdirSync(join(control, "processing")).length === 0, {
      what: "the end of its claim",
    });
    expect(keptIn(control)).toEqual([evil]);
  });

  it("is refused by the library, which goes on with the next one", async () => {
    const dir = tempDir();
    const evil = '{"title":"of a stranger"}';
    /** Somebody puts a file of theirs in its place between the look and the claim. */
    const storage: Storage = {
      ...nodeStorage,
      rename(from, to) {
        if (/inbox\/(first|c).*\.json$/.test(String(from)) && /~w-/.test(to)) {
          fs.writeFileSync(from, evil);
          fs.chownSync(from, STRANGER, STRANGER);
        }
        nodeStorage.rename(from, to);
      },
    };
    const mailbox = Mailbox.open(join(dir, "mailbox"), { durability: "process", storage });
    await mailbox.enqueue({ id: "first", title: "first", priority: 9 });
    await mailbox.enqueue({ id: "second", title: "second" });
    expect(mailbox.claim().task.id).toBe("second");
    expect(keptIn(mailbox.dir)).toEqual([evil]);
    expect(readJson(join(mailbox.dir, "failed", "first_error.json"))).toMatchObject({
      error: expect.stringContaining(`belongs to uid ${STRANGER}`),
    });
    const control = openTrays(join(dir, "control"), { durability: "process", storage });
    await enqueueCommand(control, { command: "pause" });
    expect(claimNextCommand(control, "owner-1")).toBeUndefined();
    expect(keptIn(control.dir)).toEqual([evil]);
    for (const { processing } of [openTrays(mailbox.dir), control])
      expect(fs.readdirSync(processing).filter((name) => !name.startsWith("second"))).toEqual([]);
  });

  it("is passed over by the library while it lies in the inbox", () => {
    const mailbox = Mailbox.open(join(tempDir(), "mailbox"), { durability: "process" });
    const path = join(mailbox.dir, "inbox", "a.json");
    fs.writeFileSync(path, '{"title":"a"}');
    fs.chownSync(path, STRANGER, STRANGER);
    expect(() => mailbox.claim()).toThrow("nothing is waiting");
    expect(fs.existsSync(path)).toBe(true);
    const open = Mailbox.open(mailbox.dir, { durability: "process", uids: [STRANGER] });
    expect(open.claim().task.id).toBe("a");
  });

  it("lends its task to no retry", async () => {
    const pool = newPool();
    const record = {
      task_id: "a",
      status: "failed",
      error: "x",
      attempts: 3,
      kind: "exit",
      task: { exec: ["touch", join(pool.dir, "ran")] },
    };
    const path = join(pool.failed, "a_error.json");
    fs.writeFileSync(path, JSON.stringify(record));
    fs.chownSync(path, STRANGER, STRANGER);
    const { code, stderr } = await pool.run(["retry", "a"]);
    expect(stderr).toContain(`belongs to uid ${STRANGER}`);
    expect(code).toBe(4);
    expect([fs.readdirSync(pool.inbox), fs.existsSync(path)]).toEqual([[], true]);
    fs.chownSync(path, 0, 0);
    expect((await pool.run(["retry", "a"])).code).toBe(0);
  });
});

describe.skipIf(!isRoot)("a second name of a claimed file", () => {
  it("that the mailbox has not made itself keeps it from being run", async () => {
    const pool = newPool();
    const { path } = claimAt(openTrays(pool.mailbox), {
      id: "a",
      submission: "s",
      attempt: 1,
      stage: "ready",
      token: "",
    });
    fs.writeFileSync(path, '{"exec":["true"]}');
    fs.linkSync(path, join(pool.dir, "elsewhere"));
    await pool.start();
    expect(await pool.error("a")).toMatchObject({ error: expect.stringContaining("hard link") });
  });

  it("in the inbox, as a put back leaves it that died, does not", async () => {
    const dir = join(tempDir(), "mailbox");
    const mailbox = Mailbox.open(dir, { durability: "process" });
    await mailbox.enqueue({ id: "a", title: "a" });
    const waiting = join(dir, "inbox", "a.json");
    fs.utimesSync(waiting, 1, 1);
    fs.linkSync(waiting, join(dir, "processing", "a@s.1~ready.json"));
    expect(mailbox.claim()).toMatchObject({ task: { id: "a" }, attempt: 1 });
  });
});

/** Files that the stranger may swap. */
const COUNT = IS_WHOLE ? 40 : 15;

/** Lets a stranger who may write to this directory swap what lies there, until the end of the test. */
async function letStrangerSwap(dir: string, text: string): Promise<void> {
  fs.chownSync(dir, 0, STRANGER);
  fs.chmodSync(dir, 0o770);
  const child: ChildProcess = spawn("python3", [programPath("exchange.py"), dir, text], {
    uid: STRANGER,
    gid: STRANGER,
    stdio: ["ignore", "pipe", "inherit"],
  });
  onTestFinished(() => void child.kill("SIGKILL"));
  let isReady = false;
  child.stdout?.once("data", () => {
    isReady = true;
  });
  await waitFor(() => isReady, { what: "the stranger" });
}

function openWay(pool: Pool, dirs: readonly string[]): void {
  for (const dir of [pool.dir, pool.state, ...dirs]) fs.chmodSync(dir, 0o711);
}

describe.skipIf(!isRoot || python.status !== 0)(
  "a stranger who may write to an inbox, and swaps files while they are looked at",
  () => {
    it("has no task run", async () => {
      const pool = newPool();
      openWay(pool, [pool.mailbox]);
      const ran = join(pool.dir, "ran");
      fs.mkdirSync(ran);
      await letStrangerSwap(pool.inbox, `{"exec":["touch","${ran}/%s"]}`);
      await pool.start();
      for (let n = 0; n < COUNT; n++) pool.drop(`t${n}`, { exec: ["true"] });
      await waitFor(() => pool.settledCount() >= COUNT, {
        what: "the end of all",
        timeoutMs: 30_000,
      });
      expect(fs.readdirSync(ran)).toEqual([]);
    });

    it("has no command carried out", async () => {
      const pool = newPool();
      const control = join(pool.state, "control");
      openTrays(control);
      openWay(pool, [control]);
      await letStrangerSwap(
        join(control, "inbox"),
        '{"command":"set-workers","args":{"workers":7}}',
      );
      await pool.start();
      for (let n = 0; n < COUNT; n++) {
        const staged = join(pool.dir, `c${n}`);
        fs.writeFileSync(staged, '{"command":"resume"}');
        fs.renameSync(staged, join(control, "inbox", `c${n}.json`));
      }
      const records = (): string[] =>
        ["outbox", "failed"].flatMap((tray) =>
          fs
            .readdirSync(join(control, tray))
            .filter((name) => /_(?:result|error)\.json$/.test(name)),
        );
      await waitFor(() => records().length >= COUNT, { what: "the end of all", timeoutMs: 30_000 });
      const carriedOut = fs
        .readdirSync(join(control, "outbox"))
        .map((name) => readJson<{ command: string }>(join(control, "outbox", name))?.command);
      expect(carriedOut).not.toContain("set-workers");
    });
  },
);
