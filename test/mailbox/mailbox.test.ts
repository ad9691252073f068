import fs from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import {
  ErrInvalidTransition,
  ErrIo,
  ErrLeaseLost,
  ErrNoTasks,
  ErrTaskExists,
  ErrTaskNotFound,
  Mailbox,
  type MailboxOptions,
} from "../../src/index.ts";
import { nodeStorage } from "../../src/mailbox/files/node-storage.ts";
import type { Storage } from "../../src/mailbox/files/storage.ts";
import { startProgram } from "../support/programs.ts";
import { tempDir } from "../support/temp-dir.ts";
import { waitFor } from "../support/wait-for.ts";

function open(options: MailboxOptions = {}): {
  mailbox: Mailbox;
  dir: string;
  tray: (name: string) => string[];
} {
  const dir = join(tempDir(), "mailbox");
  const mailbox = Mailbox.open(dir, { durability: "process", ...options });
  return { mailbox, dir, tray: (name) => fs.readdirSync(join(dir, name)) };
}

const codeOf = (act: () => unknown): string => {
  try {
    act();
  } catch (error) {
    return (error as { code: string }).code;
  }
  return "none";
};

describe("the mailbox as a library", () => {
  it("puts back what it has claimed and cannot read just now, and takes the next one", async () => {
    let isBroken = true;
    const storage: Storage = {
      ...nodeStorage,
      read: (path, bytesMax) => {
        if (isBroken && /one@.*~w-/.test(path))
          throw Object.assign(new Error("EIO: i/o error, read"), { code: "EIO" });
        return nodeStorage.read(path, bytesMax);
      },
    };
    const { mailbox, tray } = open({ storage });
    await mailbox.enqueue({ id: "one", title: "first", priority: 5 });
    await mailbox.enqueue({ id: "two", title: "second" });
    expect(mailbox.claim().task.id).toBe("two");
    expect(codeOf(() => mailbox.claim())).toBe("ErrIo");
    expect(tray("processing").filter((name) => /^one@.*\.1~ready\.json$/.test(name))).toHaveLength(
      1,
    );
    isBroken = false;
    expect(mailbox.claim()).toMatchObject({ attempt: 1, task: { id: "one" } });
  });

  it.each(["process", "power"] as const)(
    "takes a task from enqueue to its result with durability %s",
    async (durability) => {
      const { mailbox, dir, tray } = open({ durability });
      const id = await mailbox.enqueue({ title: "add", payload: { a: 1 } });
      expect(tray("inbox")).toEqual([`${id}.json`]);
      const held = mailbox.claim();
      expect(held).toMatchObject({ attempt: 1, task: { id, payload: { a: 1 } } });
      mailbox.renew(held);
      await mailbox.complete(held, { output: 2, verdict: "pass" });
      const record = JSON.parse(fs.readFileSync(join(dir, "outbox", `${id}_result.json`), "utf8"));
      expect(record).toMatchObject({
        task_id: id,
        status: "completed",
        output: 2,
        verdict: "pass",
        lease: held.lease,
        task: { id },
      });
      expect([...tray("inbox"), ...tray("processing"), ...tray("failed"), ...tray(".tmp")]).toEqual(
        [],
      );
    },
  );

  it("claims by priority, then age, then arrival", async () => {
    const { mailbox } = open();
    await mailbox.enqueue({ id: "a-old", title: "t", created_at: 1 });
    await mailbox.enqueue({ id: "b-old", title: "t", created_at: 1 });
    await mailbox.enqueue({ id: "new", title: "t", created_at: 2 });
    await mailbox.enqueue({ id: "urgent", title: "t", created_at: 9, priority: 5 });
    expect([1, 2, 3, 4].map(() => mailbox.claim().task.id)).toEqual([
      "urgent",
      "a-old",
      "b-old",
      "new",
    ]);
  });

  it.each(["completed", "failed"])("does not run an id again that has %s", async (how) => {
    const { mailbox, dir, tray } = open();
    await mailbox.enqueue({ id: "t", title: "t", created_at: 1 });
    const held = mailbox.claim();
    const drop = (text: string): void => fs.writeFileSync(join(dir, "inbox", "t.json"), text);
    drop(held.taskText);
    // While it runs, either.
    expect(codeOf(() => mailbox.claim())).toBe("ErrNoTasks");
    if (how === "completed") await mailbox.complete(held);
    else await mailbox.fail(held, "boom", { canRetry: false });
    expect(codeOf(() => mailbox.claim())).toBe("ErrNoTasks");
    expect(tray("inbox")).toEqual([]);
    drop('{"id":"t","title":"another"}');
    expect(codeOf(() => mailbox.claim())).toBe("ErrNoTasks");
    expect(tray("inbox")).toEqual(["t.json"]);
    expect(tray("processing")).toEqual([]);
  });

  it("passes over what has to wait: a time in the future, an unmet dependency", async () => {
    const { mailbox } = open();
    const future = Math.floor(Date.now() / 1000) + 3600;
    await mailbox.enqueue({ id: "later", title: "t", not_before: future });
    await mailbox.enqueue({ id: "second", title: "t", metadata: { dependencies: ["first"] } });
    expect(codeOf(() => mailbox.claim())).toBe("ErrNoTasks");
    await mailbox.enqueue({ id: "first", title: "t" });
    await mailbox.complete(mailbox.claim());
    expect(mailbox.claim().task.id).toBe("second");
    await mailbox.enqueue({ id: "third", title: "t", metadata: { dependencies: ["FIRST"] } });
    expect(mailbox.claim().task.id).toBe("third");
  });

  it("max_attempts: N means N runs, then the task is a dead letter with its reason", async () => {
    const { mailbox, dir } = open();
    await mailbox.enqueue({ id: "t", title: "t", max_attempts: 3 });
    const again: boolean[] = [];
    for (let run = 1; run <= 3; run++) {
      const held = mailbox.claim();
      expect(held.attempt).toBe(run);
      again.push(await mailbox.fail(held, "boom"));
    }
    expect(again).toEqual([true, true, false]);
    expect(JSON.parse(fs.readFileSync(join(dir, "failed", "t_error.json"), "utf8"))).toMatchObject({
      task_id: "t",
      error: "boom",
      attempts: 3,
      kind: "handler",
    });
    expect(() => mailbox.claim()).toThrow(ErrNoTasks);
  });

  it("a release gives the task back with its budget, a failed attempt waits for its delay", async () => {
    const { mailbox } = open();
    await mailbox.enqueue({ id: "t", title: "t", max_attempts: 2 });
    for (let time = 0; time < 5; time++) mailbox.release(mailbox.claim());
    const held = mailbox.claim();
    expect(held.attempt).toBe(1);
    await mailbox.fail(held, "boom", { delayMs: 60_000 });
    expect(() => mailbox.claim()).toThrow(ErrNoTasks);
  });

  it("a task that waits at a gate keeps its id, and is neither claimed nor recovered", async () => {
    const { mailbox, dir } = open();
    await mailbox.enqueue({ id: "held", exec: ["true"] });
    const file = "held@s1.1~hold-quota-max.json";
    fs.renameSync(join(dir, "inbox", "held.json"), join(dir, "processing", file));
    expect(codeOf(() => mailbox.claim())).toBe("ErrNoTasks");
    await mailbox.recover();
    await expect(mailbox.enqueue({ id: "held", exec: ["false"] })).rejects.toMatchObject({
      code: "ErrTaskExists",
    });
    expect(fs.readdirSync(join(dir, "processing"))).toEqual([file]);
  });

  it("ErrTaskExists: an id is taken while its task waits, runs, and when it has settled", async () => {
    const { mailbox } = open();
    const taken = async (): Promise<void> => {
      await expect(mailbox.enqueue({ id: "t", title: "another" })).rejects.toThrow(ErrTaskExists);
    };
    await mailbox.enqueue({ id: "t", title: "t" });
    await taken();
    const held = mailbox.claim();
    await taken();
    await mailbox.complete(held);
    await taken();
  });

  it("ErrInvalidTask: a task with nothing to run, or with a bad field, is refused before anything is written", async () => {
    const { mailbox, tray } = open();
    await expect(mailbox.enqueue({ id: "t" })).rejects.toMatchObject({ code: "ErrInvalidTask" });
    await expect(mailbox.enqueue({ title: "t", priority: 1.5 })).rejects.toMatchObject({
      code: "ErrInvalidTask",
      message: /priority/,
    });
    expect([...tray("inbox"), ...tray(".tmp")]).toEqual([]);
  });

  it("ErrTaskNotFound: find and retry of an id that is nowhere", async () => {
    const { mailbox } = open();
    expect(() => mailbox.find("nowhere")).toThrow(ErrTaskNotFound);
    await expect(mailbox.retry("nowhere")).rejects.toThrow(ErrTaskNotFound);
    await mailbox.enqueue({ id: "t", title: "t" });
    expect(mailbox.find("t")).toBeUndefined();
  });

  it("ErrIo: what the system refuses, also where Node has no name for it", async () => {
    const unnamed = "Unknown system error -116";
    const storage: Storage = {
      ...nodeStorage,
      list() {
        throw Object.assign(new Error(`${unnamed}: ${unnamed}, scandir`), { code: unnamed });
      },
    };
    const { mailbox } = open({ storage });
    expect(codeOf(() => mailbox.claim())).toBe("ErrIo");
    await expect(mailbox.recover()).rejects.toThrow(ErrIo);
  });

  it("ErrMailboxDir: a mailbox that anybody may write to, or that is a file, is refused", () => {
    const dir = tempDir();
    fs.mkdirSync(join(dir, "open", "inbox"), { recursive: true });
    fs.chmodSync(join(dir, "open", "inbox"), 0o777);
    expect(codeOf(() => Mailbox.open(join(dir, "open")))).toBe("ErrMailboxDir");
    fs.writeFileSync(join(dir, "file"), "");
    expect(codeOf(() => Mailbox.open(join(dir, "file")))).toBe("ErrMailboxDir");
  });

  it("fencing: whoever lost the lease can neither renew, complete, fail nor release, and changes nothing", async () => {
    const { mailbox, dir, tray } = open({ leaseTtlMs: 1 });
    await mailbox.enqueue({ id: "t", title: "t" });
    const late = mailbox.claim();
    const rival = Mailbox.open(dir, { durability: "process", leaseTtlMs: 0, agentId: "rival" });
    expect([...(await rival.recover()), ...(await rival.recover())]).toMatchObject([
      { action: "reclaimed", reason: "silent" },
    ]);
    const winner = rival.claim();
    expect(winner.attempt).toBe(2);
    const before = tray("processing");
    expect(() => mailbox.renew(late)).toThrow(ErrLeaseLost);
    await expect(mailbox.complete(late)).rejects.toThrow(ErrLeaseLost);
    await expect(mailbox.fail(late, "no")).rejects.toThrow(ErrLeaseLost);
    expect(() => mailbox.release(late)).toThrow(ErrLeaseLost);
    expect(tray("processing")).toEqual(before);
    await rival.complete(winner);
    expect([...tray("processing"), ...tray(".tmp")]).toEqual([]);
    expect(mailbox.find("t")).toMatchObject({ agent_id: "rival", attempts: 2 });
  });

  it("a settlement that comes too late at its last step is fenced and leaves no staged record", async () => {
    const { mailbox, dir, tray } = open({ leaseTtlMs: 0 });
    await mailbox.enqueue({ id: "t", title: "t" });
    const late = mailbox.claim();
    const rival = Mailbox.open(dir, { durability: "process", leaseTtlMs: 0 });
    await rival.recover();
    await rival.recover();
    await expect(mailbox.complete(late, { output: "late" })).rejects.toThrow(ErrLeaseLost);
    expect([...tray("outbox"), ...tray(".tmp")]).toEqual([]);
  });

  describe("when the disk refuses a step of the settlement", () => {
    /** @param refuses names the call of the storage that fails with ENOSPC for as long as it says so */
    function openOn(refuses: { call: "link" | "create" | "unlink" | undefined }) {
      const storage = new Proxy<Storage>(nodeStorage, {
        get: (target, key) => {
          const value = Reflect.get(target, key) as unknown;
          if (typeof value !== "function") return value;
          return (...args: unknown[]) => {
            if (key === refuses.call)
              throw Object.assign(new Error("ENOSPC: no space left on device"), { code: "ENOSPC" });
            return Reflect.apply(value, target, args) as unknown;
          };
        },
      });
      return open({ storage });
    }

    it.each(["create", "link", "unlink"] as const)(
      "complete can be called again, and the task is settled once: %s",
      async (call) => {
        const refuses: Parameters<typeof openOn>[0] = { call: undefined };
        const { mailbox, tray } = openOn(refuses);
        await mailbox.enqueue({ id: "t", title: "t" });
        const held = mailbox.claim();
        refuses.call = call;
        await expect(mailbox.complete(held, { output: 1 })).rejects.toThrow(ErrIo);
        mailbox.renew(held);
        await expect(mailbox.complete(held, { output: 1 })).rejects.toThrow(ErrIo);
        refuses.call = undefined;
        await mailbox.complete(held, { output: 1 });
        expect(mailbox.find("t")).toMatchObject({ status: "completed", output: 1 });
        expect([...tray("processing"), ...tray(".tmp"), ...tray("failed")]).toEqual([]);
        expect(tray("outbox")).toEqual(["t_result.json"]);
      },
    );

    it("what is committed stays as it is: fail publishes it, release is refused", async () => {
      const refuses: Parameters<typeof openOn>[0] = { call: undefined };
      const { mailbox, tray } = openOn(refuses);
      await mailbox.enqueue({ id: "t", title: "t" });
      const held = mailbox.claim();
      refuses.call = "link";
      await expect(mailbox.complete(held)).rejects.toThrow(ErrIo);
      expect(mailbox.find("t")).toBeUndefined();
      expect(() => mailbox.release(held)).toThrow(ErrInvalidTransition);
      refuses.call = undefined;
      expect(await mailbox.fail(held, "late")).toBe(false);
      expect(mailbox.find("t")).toMatchObject({ status: "completed" });
      expect([...tray("processing"), ...tray(".tmp"), ...tray("failed")]).toEqual([]);
    });

    it("what is not committed can still end otherwise", async () => {
      const refuses: Parameters<typeof openOn>[0] = { call: undefined };
      const { mailbox, tray } = openOn(refuses);
      await mailbox.enqueue({ id: "t", title: "t", max_attempts: 1 });
      const held = mailbox.claim();
      refuses.call = "create";
      await expect(mailbox.complete(held)).rejects.toThrow(ErrIo);
      refuses.call = undefined;
      expect(await mailbox.fail(held, "boom")).toBe(false);
      expect(mailbox.find("t")).toMatchObject({ status: "failed", error: "boom" });
      expect([...tray("processing"), ...tray(".tmp"), ...tray("outbox")]).toEqual([]);
    });

    it("recover publishes what its holder does not come back for", async () => {
      const refuses: Parameters<typeof openOn>[0] = { call: undefined };
      const { mailbox, tray } = openOn(refuses);
      await mailbox.enqueue({ id: "t", title: "t" });
      const held = mailbox.claim();
      refuses.call = "link";
      await expect(mailbox.complete(held, { output: 1 })).rejects.toThrow(ErrIo);
      refuses.call = undefined;
      expect(await mailbox.recover()).toMatchObject([{ action: "published" }]);
      await mailbox.complete(held, { output: 1 });
      expect(mailbox.find("t")).toMatchObject({ status: "completed", output: 1 });
      expect([...tray("processing"), ...tray(".tmp")]).toEqual([]);
    });
  });

  it("takes back the task of a process that was killed, at once", async () => {
    const { mailbox, dir } = open();
    await mailbox.enqueue({ id: "t", title: "t" });
    const program = startProgram("claim-and-hang.mjs", [dir]);
    await waitFor(() => program.stdout().includes("claimed"), { what: "the claim" });
    expect(await mailbox.recover()).toEqual([]);
    program.child.kill("SIGKILL");
    await program.ended;
    expect(await mailbox.recover()).toMatchObject([{ action: "reclaimed", reason: "dead" }]);
    expect(mailbox.claim()).toMatchObject({ attempt: 2 });
  });

  it("retry puts a dead letter back with every digit of its payload", async () => {
    const { mailbox, dir } = open();
    fs.writeFileSync(
      join(dir, "inbox", "t.json"),
      '{"title":"t","payload":{"n":12345678901234567890},"max_attempts":1}',
    );
    await mailbox.fail(mailbox.claim(), "boom");
    await mailbox.retry("t");
    expect(fs.readdirSync(join(dir, "failed"))).toEqual([]);
    expect(mailbox.claim().taskText).toContain("12345678901234567890");
  });

  it("ErrIo: what the disk refuses, whatever was asked for; the task is still held", async () => {
    let isBroken = false;
    const refuse = (): never => {
      throw Object.assign(new Error("EIO: made up"), { code: "EIO" });
    };
    const broken = Object.fromEntries(
      Object.entries(nodeStorage).map(([name, call]) => [
        name,
        (...args: never[]): unknown =>
          isBroken ? refuse() : (call as (...them: never[]) => unknown)(...args),
      ]),
    );
    const { mailbox } = open({ storage: broken as unknown as Storage });
    await mailbox.enqueue({ id: "held", title: "t" });
    const held = mailbox.claim();
    isBroken = true;
    const asked: Record<string, () => unknown> = {
      enqueue: () => mailbox.enqueue({ title: "t" }),
      claim: () => mailbox.claim(),
      renew: () => mailbox.renew(held),
      complete: () => mailbox.complete(held),
      fail: () => mailbox.fail(held, "why"),
      release: () => mailbox.release(held),
      recover: () => mailbox.recover(),
      retry: () => mailbox.retry("held"),
      find: () => mailbox.find("held"),
      sweep: () => mailbox.sweep(),
    };
    for (const [name, ask] of Object.entries(asked))
      await expect((async () => ask())(), name).rejects.toBeInstanceOf(ErrIo);
    isBroken = false;
    await mailbox.complete(held, { output: 1 });
    expect(mailbox.find("held")).toMatchObject({ status: "completed", output: 1 });
  });

  it("sweep removes what is past its retention, and only that", async () => {
    const { mailbox, dir, tray } = open();
    for (const id of ["old", "new"]) {
      await mailbox.enqueue({ id, title: "t" });
      await mailbox.complete(mailbox.claim());
    }
    const days = (n: number): Date => new Date(Date.now() - n * 86_400_000);
    fs.utimesSync(join(dir, "outbox", "old_result.json"), days(8), days(8));
    fs.writeFileSync(join(dir, "failed", "x_error.json"), "{}");
    fs.utimesSync(join(dir, "failed", "x_error.json"), days(29), days(29));
    fs.writeFileSync(join(dir, ".tmp", "stale"), "");
    fs.utimesSync(join(dir, ".tmp", "stale"), days(1), days(1));
    fs.writeFileSync(join(dir, ".tmp", "fresh"), "");
    expect(mailbox.sweep()).toEqual({ results: 1, errors: 0, staged: 1 });
    expect([tray("outbox"), tray("failed"), tray(".tmp")]).toEqual([
      ["new_result.json"],
      ["x_error.json"],
      ["fresh"],
    ]);
  });
});
