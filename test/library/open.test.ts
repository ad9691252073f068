/** A state tree as a library: submits, waits, follows events and gives commands; each call ends when its signal is aborted. */
import fs from "node:fs";
import { join } from "node:path";
import { describe, expect, it, test } from "vitest";
import * as z from "zod";
import {
  defineTask,
  type Ended,
  type LifecycleEvent,
  type Mailchute,
  MailchuteError,
  NoRetryError,
  open,
} from "../../src/index.ts";
import { rotate } from "../../src/journal/journal.ts";
import { newPool, QUICK_CONFIG } from "../support/pool.ts";
import { tempDir } from "../support/temp-dir.ts";
import { waitFor } from "../support/wait-for.ts";

async function openNew(): Promise<Mailchute> {
  const dir = join(tempDir(), "state");
  fs.mkdirSync(dir);
  fs.writeFileSync(join(dir, "config.yaml"), QUICK_CONFIG);
  return open(dir);
}

const codeOf = async (call: Promise<unknown>): Promise<string> => {
  const error: unknown = await call.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  return error instanceof MailchuteError ? error.code : String(error);
};
const inboxOf = ({ tree }: Mailchute): string[] => fs.readdirSync(join(tree.mailbox, "inbox"));
const isTrue = { exec: ["true"] };
const aborted = (): AbortSignal => AbortSignal.abort(new Error("enough"));

test("a tree that is missing is made, with the settings that its config.yaml gives", async () => {
  const mailchute = await openNew();
  expect(mailchute.settings).toMatchObject({ workers: 4, durability: "process" });
  expect(inboxOf(mailchute)).toEqual([]);
  fs.writeFileSync(join(mailchute.tree.dir, "config.yaml"), "workers: many\n");
  expect(await codeOf(open(mailchute.tree.dir))).toBe("ErrInvalidConfig");
});

describe("enqueue", () => {
  it("takes the same task again, also seconds later, and refuses another one", async () => {
    const mailchute = await openNew();
    await mailchute.enqueue({ id: "a", ...isTrue });
    const path = join(mailchute.tree.mailbox, "inbox", "a.json");
    const earlier = fs
      .readFileSync(path, "utf8")
      .replace(/"created_at":\d+/, '"created_at":1700000000');
    fs.writeFileSync(path, earlier);
    expect(await mailchute.enqueue({ id: "a", ...isTrue })).toBe("a");
    expect(fs.readFileSync(path, "utf8")).toBe(earlier);
    expect(await codeOf(mailchute.enqueue({ id: "a", exec: ["false"] }))).toBe("ErrTaskExists");
    expect(await codeOf(mailchute.enqueue({ id: "../a", ...isTrue }))).toBe("ErrInvalidTask");
    expect(await codeOf(mailchute.enqueue({ exec: [] }))).toBe("ErrInvalidTask");
  });

  it("of many says how each fared, in their order, and submits none when one is no task", async () => {
    const mailchute = await openNew();
    await mailchute.enqueue({ id: "t299", ...isTrue });
    const many = Array.from({ length: 300 }, (_, n) => ({ id: `t${n}`, ...isTrue }));
    const outcomes = await mailchute.enqueueAll([...many, { id: "t0", exec: ["false"] }]);
    expect(outcomes).toHaveLength(301);
    expect(outcomes.slice(0, 299).every(({ outcome }) => outcome === "submitted")).toBe(true);
    expect(outcomes.slice(299)).toMatchObject([
      { id: "t299", outcome: "unchanged" },
      { id: "t0", outcome: "refused", error: { code: "ErrTaskExists" } },
    ]);
    expect(await codeOf(mailchute.enqueueAll([{ id: "new", ...isTrue }, {}]))).toBe(
      "ErrInvalidTask",
    );
    expect(inboxOf(mailchute)).toHaveLength(300);
  });

  it("of a batch takes lines as they come, and leaves nothing when the source throws", async () => {
    const mailchute = await openNew();
    const batch = await mailchute.enqueueBatch([isTrue, isTrue], { id: "b" });
    expect(batch).toEqual({ id: "b", lines: 2, outcome: "submitted" });
    expect(await mailchute.enqueueBatch([isTrue, isTrue], { id: "b" })).toMatchObject({
      outcome: "unchanged",
    });
    async function* breaks(): AsyncGenerator<typeof isTrue> {
      yield await Promise.resolve(isTrue);
      throw new RangeError("broken source");
    }
    await expect(mailchute.enqueueBatch(breaks(), { id: "c" })).rejects.toThrow(RangeError);
    await expect(mailchute.enqueueBatch([isTrue, {}], { id: "c" })).rejects.toThrow(
      /task 2 of the batch: nothing to run/,
    );
    const controller = new AbortController();
    function* stops(): Generator<typeof isTrue> {
      yield isTrue;
      controller.abort(new Error("enough"));
      yield isTrue;
    }
    const { signal } = controller;
    await expect(mailchute.enqueueBatch(stops(), { id: "c", signal })).rejects.toThrow("enough");
    expect(inboxOf(mailchute)).toEqual(["b.ndjson"]);
    expect(fs.readdirSync(join(mailchute.tree.mailbox, ".tmp"))).toEqual([]);
  });
});

test("a signal that is aborted before ends each call, and nothing has happened", async () => {
  const mailchute = await openNew();
  const signal = aborted();
  const calls = [
    mailchute.enqueue(isTrue, { signal }),
    mailchute.enqueueAll([isTrue], { signal }),
    mailchute.enqueueBatch([isTrue], { signal }),
    mailchute.waitFor("a", { signal }),
    mailchute.command("pause", {}, { signal }),
  ];
  for (const call of await Promise.allSettled(calls))
    expect(call).toMatchObject({ status: "rejected", reason: { message: "enough" } });
  expect(await eventsOf(mailchute.subscribe({ signal }))).toEqual([]);
  expect(inboxOf(mailchute)).toEqual([]);
  expect(fs.existsSync(join(mailchute.tree.control, "inbox"))).toBe(false);
});

describe("waitFor", () => {
  it("says that a task can never run, with what to do, and tells it instead when it is asked to", async () => {
    const mailchute = await openNew();
    await mailchute.enqueue({ id: "a", ...isTrue, metadata: { dependencies: ["missing"] } });
    const error = await mailchute.waitFor("a").catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({
      code: "ErrTaskStuck",
      id: "a",
      message: "a does not start: it waits for missing, which is not here",
      hint: "drop a task with the id missing, or cancel this one",
    });
    const controller = new AbortController();
    const told: string[] = [];
    const wait = mailchute.waitFor("a", {
      signal: controller.signal,
      onStuck: ({ text }) => {
        told.push(text);
        controller.abort(new Error("told"));
      },
    });
    await expect(wait).rejects.toThrow("told");
    expect(told).toEqual(["waits for missing, which is not here"]);
  });

  it("goes on waiting while only the pool is missing, and refuses an id that nobody has", async () => {
    const mailchute = await openNew();
    await mailchute.enqueue({ id: "alone", agent: "handler-of-a-pool" });
    const signal = AbortSignal.timeout(1500);
    await expect(mailchute.waitFor("alone", { signal })).rejects.toThrow(/timeout/);
    const error = await mailchute.waitFor("alonf").catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ code: "ErrTaskNotFound", hint: "did you mean alone?" });
    expect(await mailchute.find("alone")).toBeUndefined();
    expect(await codeOf(mailchute.find("alonf"))).toBe("ErrTaskNotFound");
  });

  it("gives output or error, with the record, and events and commands come and go with a real pool", async () => {
    const pool = newPool();
    const mailchute = await open(pool.state);
    const controller = new AbortController();
    const seen: LifecycleEvent[] = [];
    const { signal } = controller;
    const events = eventsOf(mailchute.subscribe({ signal, task: ["a", "b"] }), seen);
    expect(await codeOf(mailchute.command("resume"))).toBe("ErrSupervisorGone");
    await mailchute.enqueueAll([
      { id: "a", exec: ["printf", "%s", "é"] },
      { id: "b", exec: ["sh", "-c", "exit 64"] },
      { id: "c", ...isTrue },
    ]);
    await pool.start();
    const [a, b] = await Promise.all([mailchute.waitFor("a"), mailchute.waitFor("b")]);
    expect(a).toMatchObject({ id: "a", status: "completed", output: "é", record: { attempts: 1 } });
    expect(b).toMatchObject({ id: "b", status: "failed", code: "ErrExit" });
    expect(await mailchute.find("a")).toEqual(a);
    expect(await mailchute.command("set-workers", { workers: 2 })).toEqual({ workers: 2 });
    expect(await codeOf(mailchute.command("cancel", { node: "nobody" }))).toBe("ErrTaskNotFound");
    expect(await codeOf(mailchute.command("set-workers", {}))).toBe("ErrInvalidCommand");
    await mailchute.waitFor("c");
    const isSeen = (id: string, name: string): boolean =>
      seen.some(({ task_id: task, event }) => task === id && event === name);
    await waitFor(() => isSeen("a", "completed") && isSeen("b", "failed"), { what: "both ends" });
    controller.abort();
    const names = (await events).map(({ task_id: id, event }) => `${id} ${event}`);
    expect(names).toEqual(expect.arrayContaining(["a completed", "b failed"]));
    expect(names.some((name) => name.startsWith("c "))).toBe(false);
    const since = new Date(0);
    for await (const { event } of mailchute.subscribe({ since, task: "c", event: "completed" })) {
      expect(event).toBe("completed");
      break;
    }
  });
});

async function eventsOf(
  events: AsyncIterable<LifecycleEvent>,
  seen: LifecycleEvent[] = [],
): Promise<LifecycleEvent[]> {
  for await (const event of events) seen.push(event);
  return seen;
}

test("subscribe follows the journal through several rotations, and loses and repeats nothing", async () => {
  const mailchute = await openNew();
  const path = mailchute.tree.events;
  fs.mkdirSync(join(mailchute.tree.dir, "analytics"));
  const write = (n: number): void =>
    fs.appendFileSync(path, `${JSON.stringify({ event: "progress", task_id: "a", t: n, n })}\n`);
  write(0);
  const controller = new AbortController();
  const seen: LifecycleEvent[] = [];
  const all = eventsOf(mailchute.subscribe({ signal: controller.signal }), seen);
  write(1);
  rotate(path, 0, 1);
  write(2);
  rotate(path, 0, 2);
  write(3);
  const before: LifecycleEvent[] = [];
  for await (const event of mailchute.subscribe({ since: new Date(0) }))
    if (before.push(event) === 4) break;
  expect(before.map(({ n }) => n)).toEqual([0, 1, 2, 3]);
  await waitFor(() => seen.length >= 3, { what: "the events" });
  write(4);
  await waitFor(() => seen.length >= 4, { what: "the last event" });
  controller.abort();
  expect((await all).map(({ n }) => n)).toEqual([1, 2, 3, 4]);
});

describe("a kind of task", () => {
  const resize = defineTask({
    agent: "resize",
    payload: z.object({ size: z.number() }),
    output: z.string(),
  });

  it("checks payloads before anything is submitted, and outputs where they are read", async () => {
    const task = await resize.task({ size: 3 }, { id: "a", priority: 2 });
    expect(task).toEqual({ id: "a", priority: 2, agent: "resize", payload: { size: 3 } });
    // @ts-expect-error the compiler knows the payload
    const bad: unknown = await resize.task({ size: "3" }).catch((error: unknown) => error);
    expect(bad).toMatchObject({
      code: "ErrInvalidTask",
      message: expect.stringMatching(/^the payload of a task of resize: size: .*number/),
    });
    const end: Ended = { id: "a", status: "completed", output: "done", record: undefined };
    const output: string = await resize.output(end);
    expect(output).toBe("done");
    expect(await codeOf(resize.output({ ...end, output: 3 }))).toBe("ErrInvalidResult");
  });

  it("has a handler that gets the payload, and fails without another run on what breaks a schema", async () => {
    const context = {} as Parameters<typeof handler>[1];
    const handler = resize.handler(({ size }) => (size > 0 ? "x".repeat(size) : (0 as never)));
    expect(await handler({ id: "a", payload: { size: 3 } }, context)).toBe("xxx");
    for (const payload of [{ size: "3" }, { size: -1 }])
      await expect(handler({ id: "a", payload }, context)).rejects.toThrow(NoRetryError);
  });
});
