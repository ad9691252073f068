/** Submitting: a task gets in once, whole, and never over another one, wherever that one is by now. */
import fs from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { encodeRecord } from "../../src/codec/records.ts";
import { ErrInvalidTask, ErrIo, ErrTaskExists } from "../../src/core/errors.ts";
import { TASK_BYTES_MAX } from "../../src/core/limits.ts";
import { errorName, formatName, type ProcessingName, resultName } from "../../src/core/names.ts";
import type { ErrorRecord } from "../../src/core/task.ts";
import { nodeStorage } from "../../src/mailbox/files/node-storage.ts";
import type { Storage } from "../../src/mailbox/files/storage.ts";
import { type Durability, openTrays, type Trays } from "../../src/mailbox/files/trays.ts";
import { type Submission, submit, submitAll } from "../../src/mailbox/submit/submit.ts";
import { startProgram } from "../support/programs.ts";
import { canMount, smallDisk } from "../support/small-disk.ts";
import { tempDir } from "../support/temp-dir.ts";
import { waitFor } from "../support/wait-for.ts";

const DURABILITIES: Durability[] = ["power", "process"];

function openMailbox(durability: Durability = "process", storage: Partial<Storage> = {}): Trays {
  return openTrays(join(tempDir(), "mailbox"), {
    durability,
    storage: { ...nodeStorage, ...storage },
  });
}

function task(id: string, prompt = "x"): Submission {
  return { id, bytes: Buffer.from(JSON.stringify({ id, prompt })) };
}

/** All files of a mailbox by tray. */
function filesOf(trays: Trays): Record<string, string[]> {
  const trayNames = ["inbox", "processing", "outbox", "failed", "tmp"] as const;
  return Object.fromEntries(trayNames.map((tray) => [tray, fs.readdirSync(trays[tray]).sort()]));
}

const EMPTY = { inbox: [], processing: [], outbox: [], failed: [], tmp: [] };

function failureRecord(id: string, facts: Partial<ErrorRecord>): Buffer {
  const record: ErrorRecord = {
    task_id: id,
    status: "failed",
    error: "it broke",
    attempts: 1,
    last_attempt_at: 1,
    failed_at: 1,
    code: "ErrExit",
    kind: "exit",
    agent_id: "",
    lease: "",
    exit_code: 1,
    signal: null,
    run: null,
    ...facts,
  };
  return encodeRecord(record, undefined);
}

describe.each(DURABILITIES)("with durability %s, a task", (durability) => {
  it("that is submitted lies in the inbox as its very bytes, and nothing is left over", async () => {
    const trays = openMailbox(durability);
    const bytes = Buffer.from(' {"prompt":"é",\n"payload":12345678901234567890}\n');
    expect(await submit(trays, { id: "a", bytes })).toBe("submitted");
    expect(filesOf(trays)).toEqual({ ...EMPTY, inbox: ["a.json"] });
    expect(fs.readFileSync(join(trays.inbox, "a.json")).equals(bytes)).toBe(true);
    expect(fs.statSync(join(trays.inbox, "a.json"))).toMatchObject({ nlink: 1, mode: 0o100600 });
  });

  it("whose identical bytes wait in the inbox already is unchanged", async () => {
    const trays = openMailbox(durability);
    await submit(trays, task("a"));
    const before = fs.statSync(join(trays.inbox, "a.json"));
    expect(await submit(trays, task("a"))).toBe("unchanged");
    expect(fs.statSync(join(trays.inbox, "a.json")).ino).toBe(before.ino);
    expect(filesOf(trays)).toEqual({ ...EMPTY, inbox: ["a.json"] });
  });

  it("with the id of another one in the inbox is refused, and that one stays as it is", async () => {
    const trays = openMailbox(durability);
    await submit(trays, task("a", "first"));
    await expect(submit(trays, task("a", "second"))).rejects.toBeInstanceOf(ErrTaskExists);
    expect(fs.readFileSync(join(trays.inbox, "a.json"), "utf8")).toContain("first");
    expect(filesOf(trays)).toEqual({ ...EMPTY, inbox: ["a.json"] });
  });

  const stages: ProcessingName["stage"][] = ["ready", "w", "ok", "err", "again"];
  it.each(stages)("with the id of one in processing at stage %s is refused", async (stage) => {
    const trays = openMailbox(durability);
    const name: ProcessingName = {
      id: "a",
      submission: "s",
      attempt: 1,
      stage,
      token: stage === "ready" ? "" : "x",
    };
    fs.writeFileSync(join(trays.processing, formatName(name)), "{}");
    await expect(submit(trays, task("a"))).rejects.toMatchObject({
      code: "ErrTaskExists",
      id: "a",
      phase: "enqueue",
    });
    expect(filesOf(trays)).toEqual({ ...EMPTY, processing: [formatName(name)] });
  });

  it("with the id of a foreign worker's plain claim is refused", async () => {
    const trays = openMailbox(durability);
    fs.writeFileSync(join(trays.processing, "a.json"), "{}");
    await expect(submit(trays, task("a"))).rejects.toBeInstanceOf(ErrTaskExists);
  });

  it("whose id differs only in case from one in processing is refused", async () => {
    const trays = openMailbox(durability);
    fs.writeFileSync(join(trays.processing, "Task-A@s.1~ready.json"), "{}");
    await expect(submit(trays, task("tASK-a"))).rejects.toBeInstanceOf(ErrTaskExists);
    expect(await submit(trays, task("task-ab"))).toBe("submitted");
  });

  it("whose id has a result is refused, and the path of the result is told", async () => {
    const trays = openMailbox(durability);
    const path = join(trays.outbox, resultName("a"));
    fs.writeFileSync(path, "{}");
    await expect(submit(trays, task("a"))).rejects.toMatchObject({ code: "ErrTaskExists", path });
    expect(filesOf(trays)).toEqual({ ...EMPTY, outbox: ["a_result.json"] });
  });

  it("whose id has failed is refused, however it failed once it ran, or when nobody can tell", async () => {
    const records = [
      failureRecord("a", { kind: "exit" }),
      failureRecord("a", { kind: "cancelled", attempts: 0 }),
      failureRecord("a", { kind: "invalid", attempts: 1 }),
      Buffer.from("{}"),
      Buffer.from(""),
    ];
    for (const record of records) {
      const trays = openMailbox(durability);
      fs.writeFileSync(join(trays.failed, errorName("a")), record);
      await expect(submit(trays, task("a")), record.toString()).rejects.toBeInstanceOf(
        ErrTaskExists,
      );
      expect(filesOf(trays)).toEqual({ ...EMPTY, failed: ["a_error.json"] });
    }
  });

  it("whose id stands in the record of a file that was refused unrun gets in", async () => {
    const trays = openMailbox(durability);
    fs.writeFileSync(
      join(trays.failed, errorName("a")),
      failureRecord("a", { kind: "invalid", attempts: 0 }),
    );
    expect(await submit(trays, task("a"))).toBe("submitted");
    expect(filesOf(trays)).toEqual({ ...EMPTY, inbox: ["a.json"], failed: ["a_error.json"] });
  });

  it("whose id is none is refused, and nothing is written outside of the mailbox", async () => {
    const trays = openMailbox();
    const [outcome] = await submitAll(trays, [task("../../escaped")]);
    expect(outcome).toMatchObject({ outcome: "refused", error: { code: "ErrInvalidTask" } });
    expect(fs.readdirSync(join(trays.dir, ".."))).toEqual(["mailbox"]);
    expect(filesOf(trays)).toEqual(EMPTY);
  });

  it("whose id differs only in case from one of the same group is refused", async () => {
    const outcomes = await submitAll(openMailbox(), [task("new"), task("NEW"), task("other")]);
    expect(outcomes.map((o) => o.outcome)).toEqual(["submitted", "refused", "submitted"]);
  });

  it("whose identical bytes were accepted already is unchanged: the acknowledgement was lost", async () => {
    const trays = openMailbox();
    await submit(trays, task("a"));
    fs.renameSync(join(trays.inbox, "a.json"), join(trays.processing, "a@s.1~ready.json"));
    expect(await submit(trays, task("a"))).toBe("unchanged");
    expect(filesOf(trays)).toEqual({ ...EMPTY, processing: ["a@s.1~ready.json"] });
  });

  it("finds its way when the inbox alone was deleted meanwhile", async () => {
    const trays = openMailbox();
    fs.rmdirSync(trays.inbox);
    expect(await submit(trays, task("a"))).toBe("submitted");
  });

  it("above the limit of size is refused before anything is written", async () => {
    const trays = openMailbox(durability);
    const submission = { id: "a", bytes: Buffer.alloc(TASK_BYTES_MAX + 1, 0x20) };
    await expect(submit(trays, submission)).rejects.toBeInstanceOf(ErrInvalidTask);
    expect(filesOf(trays)).toEqual(EMPTY);
    expect(await submit(trays, { id: "a", bytes: submission.bytes.subarray(1) })).toBe("submitted");
  });

  it("finds its way when the mailbox was deleted meanwhile", async () => {
    const trays = openMailbox(durability);
    fs.rmSync(trays.dir, { recursive: true });
    expect(await submit(trays, task("a"))).toBe("submitted");
    expect(filesOf(trays)).toEqual({ ...EMPTY, inbox: ["a.json"] });
  });

  it("among many is answered for itself: each outcome stands where its submission stood", async () => {
    const trays = openMailbox(durability);
    await submitAll(trays, [task("waits"), task("other", "first")]);
    fs.writeFileSync(join(trays.outbox, resultName("done")), "{}");
    const outcomes = await submitAll(trays, [
      task("new"),
      task("waits"),
      task("other", "second"),
      task("done"),
      { id: "large", bytes: Buffer.alloc(TASK_BYTES_MAX + 1) },
      task("twice"),
      task("twice"),
      task("twice", "differs"),
    ]);
    expect(outcomes.map(({ id, outcome }) => [id, outcome])).toEqual([
      ["new", "submitted"],
      ["waits", "unchanged"],
      ["other", "refused"],
      ["done", "refused"],
      ["large", "refused"],
      ["twice", "submitted"],
      ["twice", "unchanged"],
      ["twice", "refused"],
    ]);
    expect(filesOf(trays)).toMatchObject({
      inbox: ["new.json", "other.json", "twice.json", "waits.json"],
      tmp: [],
    });
  });

  it("of two processes that submit the same ids at once gets in once, and the other one is told", async () => {
    const trays = openMailbox(durability);
    const ids = Array.from({ length: 150 }, (_, n) => `task-${n}`);
    const labels = ["first", "second"];
    const programs = labels.map((label) =>
      startProgram("submit-tasks.mjs", [trays.dir, durability, label, ids.join(",")]),
    );
    await waitFor(
      () => programs.every((program) => program.stdout() !== "" || program.child.exitCode !== null),
      { what: "both producers" },
    );
    for (const program of programs) program.child.stdin?.end("go\n");
    for (const program of programs)
      expect(await program.ended, program.stderr()).toMatchObject({ exitCode: 0 });
    const answers = programs.map(
      (program) =>
        JSON.parse(program.stdout().replace("ready\n", "")) as { outcome: string; code?: string }[],
    );
    for (const [n, id] of ids.entries()) {
      const outcomes = answers.map((answer) => answer[n]?.outcome);
      expect(new Set(outcomes), id).toEqual(new Set(["refused", "submitted"]));
      const winner = labels[outcomes.indexOf("submitted")];
      expect(JSON.parse(fs.readFileSync(join(trays.inbox, `${id}.json`), "utf8"))).toEqual({
        id,
        prompt: winner,
      });
      expect(answers[outcomes.indexOf("refused")]?.[n]?.code).toBe("ErrTaskExists");
    }
    expect(filesOf(trays)).toMatchObject({ inbox: ids.map((id) => `${id}.json`).sort(), tmp: [] });
  });
});

describe("a task that clashes while it is submitted", () => {
  it("is taken back when one of the same id left the inbox between the look and the link", async () => {
    const trays = openMailbox();
    // The other task is claimed in the very moment ours is written.
    const other = join(trays.processing, "a@s.1~w-x.json");
    trays.storage = {
      ...nodeStorage,
      create(path, bytes) {
        nodeStorage.create(path, bytes);
        fs.writeFileSync(other, "{}");
      },
    };
    await expect(submit(trays, task("a"))).rejects.toBeInstanceOf(ErrTaskExists);
    expect(filesOf(trays)).toEqual({ ...EMPTY, processing: ["a@s.1~w-x.json"] });
  });

  it("is not taken back when the one in processing is itself, accepted at once", async () => {
    const trays = openMailbox();
    trays.storage = {
      ...nodeStorage,
      link(from, to) {
        nodeStorage.link(from, to);
        fs.renameSync(to, join(trays.processing, "a@s.1~ready.json"));
      },
    };
    expect(await submit(trays, task("a"))).toBe("submitted");
    expect(filesOf(trays)).toEqual({ ...EMPTY, processing: ["a@s.1~ready.json"] });
  });

  it("leaves alone what another producer has put in its place since", async () => {
    const trays = openMailbox();
    trays.storage = {
      ...nodeStorage,
      link(from, to) {
        nodeStorage.link(from, to);
        fs.renameSync(to, join(trays.processing, "a@s.1~ready.json"));
        fs.writeFileSync(to, "of somebody else");
      },
    };
    expect(await submit(trays, task("a"))).toBe("submitted");
    expect(filesOf(trays)).toEqual({
      ...EMPTY,
      inbox: ["a.json"],
      processing: ["a@s.1~ready.json"],
    });
    expect(fs.readFileSync(join(trays.inbox, "a.json"), "utf8")).toBe("of somebody else");
  });

  it("is not taken back when it was run to its end before the second look", async () => {
    const trays = openMailbox();
    trays.storage = {
      ...nodeStorage,
      link(from, to) {
        nodeStorage.link(from, to);
        fs.renameSync(to, join(trays.outbox, resultName("a")));
      },
    };
    expect(await submit(trays, task("a"))).toBe("submitted");
    expect(filesOf(trays)).toEqual({ ...EMPTY, outbox: ["a_result.json"] });
  });
});

describe("the order of durable steps", () => {
  async function stepsOf(durability: Durability, submissions: Submission[]): Promise<string[]> {
    const steps: string[] = [];
    const trays = openMailbox(durability);
    const tray = (path: string): string =>
      path.slice(trays.dir.length + 1).replace(/[^/]+\.(json\.)?tmp$/, "*");
    trays.storage = {
      ...nodeStorage,
      create(path, bytes) {
        steps.push(`create ${tray(path)}`);
        nodeStorage.create(path, bytes);
      },
      link(from, to) {
        steps.push(`link ${tray(to)}`);
        nodeStorage.link(from, to);
      },
      async syncFiles(paths) {
        await nodeStorage.syncFiles(paths);
        steps.push(`sync ${paths.map(tray).join(" ")}`);
      },
      async syncDirs(paths) {
        await nodeStorage.syncDirs(paths);
        steps.push(`sync ${paths.map(tray).join(" ")}`);
      },
    };
    await submitAll(trays, submissions);
    return steps;
  }

  it("against a power cut is file, name, directory, with one wait for the whole group", async () => {
    expect(await stepsOf("power", [task("a"), task("b")])).toEqual([
      "create .tmp/*",
      "create .tmp/*",
      "sync .tmp/* .tmp/*",
      "link inbox/a.json",
      "link inbox/b.json",
      "sync inbox",
    ]);
  });

  it("is the same for what is unchanged: it promises no less than submitted", async () => {
    const trays = openMailbox("power");
    await submit(trays, task("a"));
    const synced: string[] = [];
    trays.storage = {
      ...nodeStorage,
      async syncDirs(paths) {
        synced.push(...paths);
        await nodeStorage.syncDirs(paths);
      },
    };
    expect(await submit(trays, task("a"))).toBe("unchanged");
    expect(synced).toEqual([trays.inbox]);
  });

  it("that breaks (a failed fsync) is an outcome, not a raw error, and leaves no staged file", async () => {
    const broken = Object.assign(new Error("EIO"), { code: "EIO" });
    const trays = openMailbox("power", { syncFiles: () => Promise.reject(broken) });
    const outcomes = await submitAll(trays, [task("a")]);
    expect(outcomes).toMatchObject([{ outcome: "refused", error: { code: "ErrIo" } }]);
    expect(filesOf(trays)).toEqual(EMPTY);
  });

  it("against the death of processes needs no wait at all", async () => {
    expect(await stepsOf("process", [task("a")])).toEqual(["create .tmp/*", "link inbox/a.json"]);
  });
});

describe.skipIf(!canMount())("a full disk", () => {
  it("refuses tasks with an error that says what to do, loses none that is there, and leaves nothing half written", async () => {
    const disk = smallDisk();
    const trays = openTrays(join(disk.dir, "mailbox"), { durability: "power" });
    await submit(trays, task("before"));
    disk.fill(1);
    const large = {
      id: "large",
      bytes: Buffer.from(JSON.stringify({ prompt: "x".repeat(20_000) })),
    };
    const [outcome] = await submitAll(trays, [large]);
    expect(outcome).toMatchObject({
      outcome: "refused",
      error: { code: "ErrIo", id: "large", hint: expect.stringContaining("make room") },
    });
    await expect(submit(trays, large)).rejects.toBeInstanceOf(ErrIo);
    expect(filesOf(trays)).toEqual({ ...EMPTY, inbox: ["before.json"] });
    disk.free();
    expect(await submit(trays, large)).toBe("submitted");
    expect(fs.readFileSync(join(trays.inbox, "large.json")).equals(large.bytes)).toBe(true);
  });
});
