/** How the runs of agents end is told to the orchestrator: once, over any death; through real processes, with stand-ins for programs. */
import fs from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { changeAgent, createAgent, readAgent } from "../../../src/parts/mail/agents/agents.ts";
import { exitMessage } from "../../../src/parts/mail/exits/exit-message.ts";
import { decodePost } from "../../../src/parts/mail/post/decode-post.ts";
import { OUTSIDE } from "../../../src/parts/mail/scope/scope.ts";
import { send } from "../../../src/parts/mail/send/send.ts";
import { readCursor } from "../../../src/parts/mail/store/cursors.ts";
import { unreadOf } from "../../../src/parts/mail/store/inbox.ts";
import { MailFolder } from "../../../src/parts/mail/store/mail-folder.ts";
import { MessageReader, type Numbered } from "../../../src/parts/mail/store/read-messages.ts";
import { UNTIL_GO } from "../../agents/talk/talk-pool.ts";
import type { Pool } from "../../support/pool.ts";
import { takeSome } from "../../support/take-some.ts";
import { tempDir } from "../../support/temp-dir.ts";
import { waitFor } from "../../support/wait-for.ts";
import { newMailPool, streamsOf, wakesOf } from "./mail-pool.ts";

takeSome();

const AT_WORK = { GO: [[{ run: UNTIL_GO }, { say: "All\nis done." }]] };

/** The messages about exits, in order. */
function exitsIn(folder: MailFolder): Numbered[] {
  return [...new MessageReader(folder).next()].filter(({ id }) => id.startsWith("exit-"));
}

const isAtWork = (pool: Pool): boolean => streamsOf(pool).join().includes("until test");
const workersOf = (pool: Pool): number[] => pool.workers().map(({ pid }) => pid);

/** A pool in which `codex` is told how the others end. */
function newExitPool(isInRepository = false): ReturnType<typeof newMailPool> {
  const made = newMailPool(AT_WORK, undefined, undefined, isInRepository);
  fs.appendFileSync(join(made.pool.state, "config.yaml"), "orchestrator: codex\n");
  return made;
}

describe("the exit of an agent's run", () => {
  it("is told to the orchestrator with its verdict and last lines, and wakes it", async () => {
    const { pool, folder, cursorOf } = newExitPool();
    pool.drop("a", { agent: "claude", prompt: "GO", cwd: pool.dir });
    await pool.start();
    await waitFor(() => isAtWork(pool), { what: "the tool call" });
    await waitFor(() => readAgent(folder, "claude")?.status === "busy", { what: "busy" });
    expect(workersOf(pool)).toContain(readAgent(folder, "claude")?.pid);
    fs.writeFileSync(join(pool.dir, "go"), "");
    const { lease } = await pool.result("a");
    await waitFor(() => cursorOf("codex") === 1, { what: "codex to read it", timeoutMs: 30_000 });
    const run = lease.split(".").slice(0, 2).join(".");
    expect(exitsIn(folder)[0]).toMatchObject({
      id: `exit-a@${run}`,
      from_agent: "claude",
      from_inc: 1,
      via: "system",
      to: ["unknown:main:codex"],
      mentions: [],
      hops: 0,
      content: "a completed, verdict unknown\n\nAll\nis done.",
    });
    const told = fs.readFileSync(join(pool.dir, "fake", "messages.jsonl"), "utf8");
    expect(told).toContain("> a completed, verdict unknown");
    await waitFor(() => exitsIn(folder).length === 2, { what: "the exit of codex" });
    // The orchestrator's own exit wakes nobody, and after it all is quiet.
    expect(exitsIn(folder)[1]).toMatchObject({ from_agent: "codex", to: [], hops: 1 });
    expect(readAgent(folder, "claude")).toMatchObject({ status: "idle", pid: null });
    expect(readAgent(folder, "claude")?.completed_at).toBeGreaterThan(0);
    expect(wakesOf(pool)).toHaveLength(1);
    const notes = (): string[] =>
      fs.readdirSync(join(pool.state, "exits")).filter((name) => name !== ".tmp");
    await waitFor(() => notes().length === 0, { what: "the notes to go" });
  });

  it("is told when a drain ends, too", async () => {
    const { pool, folder } = newMailPool();
    pool.drop("a", { agent: "claude", prompt: "hi", cwd: pool.dir });
    const running = pool.spawn(["run", "--drain"]);
    expect((await running.ended).exitCode).toBe(0);
    // There is no agent june: the message is kept for one.
    expect(exitsIn(folder)).toMatchObject([{ to: ["unknown:main:june"] }]);
  });
});

it("a busy agent of another tree in the same scope stays busy", async () => {
  const { pool, folder } = newExitPool(true);
  const home = join(pool.dir, "other");
  fs.mkdirSync(home);
  const draft = { name: "ann", type: "claude", status: "busy", home };
  await createAgent(folder, draft, Date.now());
  const gone = { name: "joe", type: "claude", status: "busy", home: join(draft.home, "gone") };
  await createAgent(folder, gone, Date.now());
  await pool.start();
  // The tree of this one is not there any more: it was moved.
  await waitFor(() => readAgent(folder, "joe")?.status === "idle", { what: "the first look" });
  expect(readAgent(folder, "ann")?.status).toBe("busy");
});

describe("a busy agent whose process is gone", () => {
  it("has failed, and that is told once, also when the supervisor dies with it", async () => {
    const { pool, folder } = newExitPool();
    pool.drop("a", { agent: "claude", prompt: "GO", cwd: pool.dir, max_attempts: 1 });
    await pool.start();
    await waitFor(() => readAgent(folder, "claude")?.status === "busy", { what: "busy" });
    await waitFor(() => isAtWork(pool), { what: "the tool call" });
    await pool.killAll();
    expect(readAgent(folder, "claude")?.status).toBe("busy");
    expect(exitsIn(folder)).toEqual([]);
    for (let round = 0; round < 3; round++) {
      await pool.start();
      await waitFor(() => readAgent(folder, "claude")?.status === "failed", { what: "failed" });
      await pool.killAll();
    }
    const [first] = exitsIn(folder).filter(({ from_agent: from }) => from === "claude");
    expect(first?.content).toMatch(/^a failed \(lease_expired\): .*worker/);
    expect(exitsIn(folder).filter(({ from_agent: from }) => from === "claude")).toHaveLength(1);
    expect(pool.errors()).toHaveLength(1);
  });

  it("is told of at the next start when the task settled while no supervisor ran", async () => {
    const { pool, folder } = newExitPool();
    pool.drop("a", { agent: "claude", prompt: "GO", cwd: pool.dir });
    const { pid } = await pool.start();
    await waitFor(() => isAtWork(pool), { what: "the tool call" });
    process.kill(pid, "SIGKILL");
    fs.writeFileSync(join(pool.dir, "go"), "");
    await pool.result("a");
    expect(exitsIn(folder)).toEqual([]);
    await pool.start();
    await waitFor(() => exitsIn(folder).length > 0, { what: "the message" });
    expect(exitsIn(folder)[0]?.content).toContain("a completed");
  });
});

it("messages of mailchute itself wake no other agent than the orchestrator", async () => {
  const { pool, folder, post, cursorOf } = newExitPool();
  await pool.start();
  post({ via: "system", from: "server", to: ["claude"], text: "for claude" });
  post({ via: "system", from: "server", to: ["codex"], text: "for codex" });
  await waitFor(() => cursorOf("codex") === 2, { what: "codex to read it", timeoutMs: 30_000 });
  expect(cursorOf("claude")).toBe(0);
  expect(wakesOf(pool)).toHaveLength(1);
  // It comes along with the next message that wakes.
  post({ text: "look" });
  await waitFor(() => unreadOf(folder, "claude").messages.length === 0, {
    what: "claude to read both",
    timeoutMs: 30_000,
  });
  expect(streamsOf(pool).join()).toContain("> for claude");
});

describe("names", () => {
  const store = (): { dataDir: string; isDurable: boolean; orchestrator: string } => ({
    dataDir: tempDir(),
    isDurable: false,
    orchestrator: "june",
  });

  it("no agent takes those of the orchestrator and of people, and no file speaks as them", async () => {
    const folder = new MailFolder(store(), OUTSIDE);
    for (const name of ["june", "June", "human"])
      await expect(createAgent(folder, { name, type: "claude" }, 0)).rejects.toThrow(
        /no name of an agent: .* of (the orchestrator|a person)/,
      );
    const own = { name: "june", type: "claude", isOfSettings: true };
    expect(await createAgent(folder, own, 0)).not.toHaveProperty("isOfSettings");
    // In another scope it is a name like others.
    const post = (from: string, more = {}): unknown =>
      decodePost(
        Buffer.from(JSON.stringify({ from_agent: from, content: "hi", ...more })),
        "m1",
        OUTSIDE,
        "app:main:june",
      );
    expect(() => post("human")).toThrow(/cannot speak as human/);
    expect(() => post("June", { project: "app" })).toThrow(/cannot speak as the orchestrator/);
    expect(post("june")).toMatchObject({ from: "june" });
  });

  it("a sender is named with its incarnation, and a new one gets no mail of the old one", async () => {
    const one = store();
    const folder = new MailFolder(one, OUTSIDE);
    const say = (from: string, to: string): string =>
      send(one, { scope: OUTSIDE, from, via: "run", to: [to], text: "hi" }, 0).id;
    for (const inc of [1, 2]) {
      await createAgent(folder, { name: "ann", type: "claude" }, 0);
      say("bob", "ann");
      expect(unreadOf(folder, "ann").messages).toHaveLength(1);
      say("ann", "bob");
      const last = [...new MessageReader(folder).next()].at(-1);
      expect(last).toMatchObject({ from_agent: "ann", from_inc: inc });
      await changeAgent(folder, "ann", { archived_at: 1 }, 0);
    }
    const first = [...new MessageReader(folder).next()][0];
    expect(first).toMatchObject({ from_agent: "bob", from_inc: null });
    expect(readCursor(folder, "ann").upto).toBe(2);
  });
});

describe("the text about an exit", () => {
  const note = { v: 1, task: "a", agent: "claude", run: "s.1" } as const;
  const record = { task_id: "a", lease: "s.2.x", attempts: 2 };

  it("has the last ten lines, and of a failure its kind and first line", () => {
    const lines = Array.from({ length: 30 }, (_, n) => `line ${n}`);
    const completed = { ...record, status: "completed", verdict: "pass", verdict_reason: "fine" };
    const done = exitMessage(note, { ...completed, output: lines.join("\n") } as never);
    expect(done).toMatchObject({ id: "exit-a@s.2", hops: 0 });
    expect(done?.text.split("\n")).toEqual([
      "a completed, verdict pass (fine)",
      "",
      ...lines.slice(-10),
    ]);
    const error = ["it broke", "more", "and more"].join("\n");
    const failed = exitMessage(note, { ...record, status: "failed", kind: "exit", error } as never);
    expect(failed?.text).toBe("a failed (exit): it broke\n\nmore\nand more");
  });

  it("counts the hops of a wake-up only, and says when no record is left", () => {
    const task = { env: { MAILCHUTE_HOPS: "4" } };
    const completed = { ...record, status: "completed", verdict: "pass", verdict_reason: "", task };
    expect(exitMessage(note, completed as never)?.hops).toBe(0);
    expect(exitMessage({ ...note, task: "wake.1.1.1" }, completed as never)?.hops).toBe(4);
    expect(exitMessage(note, undefined)?.text).toContain("record was taken away");
    expect(exitMessage({ ...note, run: null }, undefined)).toBeUndefined();
  });
});
