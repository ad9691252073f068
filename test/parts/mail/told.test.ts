/** What agents are told when they are woken, and once more after their context was compacted; through real processes. */
import fs from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { createAgent, readAgent } from "../../../src/parts/mail/agents/agents.ts";
import { createTask } from "../../../src/parts/mail/agents/tasks.ts";
import { MessageReader } from "../../../src/parts/mail/store/read-messages.ts";
import { newTalkPool } from "../../agents/talk/talk-pool.ts";
import type { Pool } from "../../support/pool.ts";
import { takeSome } from "../../support/take-some.ts";
import { waitFor } from "../../support/wait-for.ts";
import { newMailPool, streamsOf } from "./mail-pool.ts";

takeSome();

/** What the programs were told at the beginning of each turn. */
function toldTo(pool: Pool): string[] {
  const path = join(pool.dir, "fake", "messages.jsonl");
  if (!fs.existsSync(path)) return [];
  return fs
    .readFileSync(path, "utf8")
    .trimEnd()
    .split("\n")
    .map((line) => (JSON.parse(line) as { message: string }).message);
}

/** A tool call that goes on until the test makes this file. */
const until = (name: string): object => ({ run: `until test -e ${name}; do sleep 0.1; done` });
const go = (pool: Pool, name: string): void => fs.writeFileSync(join(pool.dir, name), "");

describe("the packet of a run", () => {
  it("tells of the colleagues, also when a session goes on", async () => {
    const { pool, folder } = newMailPool({
      FIRST: [[{ say: "half" }, { kill: "SIGKILL" }], [{ say: "all" }]],
    });
    await createAgent(folder, { name: "ann", type: "claude" }, Date.now());
    pool.drop("a", { agent: "claude", prompt: "FIRST" });
    await pool.start();
    await pool.result("a");
    const told = toldTo(pool);
    expect(told).toHaveLength(2);
    for (const packet of told) {
      expect(packet).toContain("You are the agent claude in the scope unknown:main.");
      expect(packet).toContain("\n- ann (claude, idle)\n");
      expect(packet.split("`mailchute say")).toHaveLength(2);
    }
    expect(told[0]?.startsWith("FIRST\n\n\n## Your colleagues\n\n")).toBe(true);
  });

  it("has no word of it without mail, and neither has that of a program of one's own", async () => {
    const plain = newTalkPool({});
    plain.drop("a", { agent: "claude", prompt: "FIRST", title: "The first" });
    await plain.start();
    await plain.result("a");
    expect(toldTo(plain)).toEqual(["# The first\n\n\nFIRST\n"]);
    const { pool } = newMailPool();
    const config = join(pool.state, "config.yaml");
    const own = `{name: own, kind: exec, program: sh, args: [-c, 'cat "$MAILCHUTE_PACKET"']}`;
    const text = fs.readFileSync(config, "utf8");
    fs.writeFileSync(config, text.replace("agents: [", `agents: [${own}, `));
    pool.drop("b", { agent: "own", prompt: "FIRST", title: "The first" });
    await pool.start();
    expect((await pool.result("b")).output).toBe("# The first\n\n\nFIRST\n");
    expect(fs.existsSync(join(plain.state, "scopes"))).toBe(false);
  });
});

it("a run under the name of an agent of another tree leaves the record of that one as it is", async () => {
  const steps = { FIRST: [[{ compact: true }, { say: "ok" }]] };
  const { pool, folder } = newMailPool(steps, undefined, undefined, true);
  const home = join(pool.dir, "other");
  fs.mkdirSync(home);
  const draft = { name: "claude", type: "claude", status: "busy", home };
  await createAgent(folder, draft, Date.now());
  const before = readAgent(folder, "claude");
  pool.drop("a", { agent: "claude", prompt: "FIRST" });
  await pool.start();
  await pool.result("a");
  // It has ended in its tree, too.
  await waitFor(() => [...new MessageReader(folder).next()].length > 0, { what: "its exit" });
  expect(toldTo(pool).join()).toContain("You are the agent claude");
  expect(readAgent(folder, "claude")).toEqual(before);
});

it("a woken agent is told why, how the tasks stand, and its mail, in at most 8 KiB", async () => {
  const { pool, folder, post, cursorOf } = newMailPool({ GO: [[until("go"), { say: "ok" }]] });
  const task = { id: "t1", name: "the schema", sort_index: 1, assigned_agent: "codex" };
  await createTask(folder, task, Date.now());
  pool.drop("slow", { agent: "codex", prompt: "GO", title: "the slow one", cwd: pool.dir });
  pool.drop("bad", { exec: ["sh", "-c", "echo no way >&2; exit 65"] });
  for (let n = 0; n < 80; n++)
    pool.drop(`w${n}`, { exec: ["true", "x".repeat(99)], not_before: 4_000_000_000 });
  await pool.start();
  await pool.error("bad");
  await waitFor(() => streamsOf(pool).join().includes("until test"), { what: "the tool call" });
  const ids = [post({ text: "x".repeat(3000) }), post({ text: "y".repeat(3000) }), post()];
  const told = (): string[] => toldTo(pool).filter((text) => text.includes("Messages for you"));
  await waitFor(() => cursorOf("claude") === 3, { what: "all mail", timeoutMs: 60_000 });
  const [first = "", second = ""] = told();
  expect(told()).toHaveLength(2);
  expect(first).toContain(`You were woken by mail of unknown:main:ann (${ids[0]}).`);
  expect(first).toContain("The tasks here:");
  expect(first).toMatch(/^- bad: failed: .*65/m);
  expect(first).toContain("- slow: running: the slow one");
  expect(first).toContain("- w0: waiting: true xxx");
  expect(first).toMatch(/^- \d+ others: `mailchute ls --state-is waiting`$/m);
  expect(first).toContain("- t1: open, codex: the schema");
  expect(first).toContain("2 more unread: mailchute mail");
  expect(Buffer.byteLength(first)).toBeLessThanOrEqual(8 * 1024);
  // What ended before it was woken last is no news any more.
  expect(second).toMatch(/^The tasks here, with those that have ended since 20/m);
  expect(second).not.toContain("- bad: ");
  expect(second).toContain("- slow: running");
  expect(second).toContain("> look at X");
  go(pool, "go");
});

describe("after its context was compacted, an agent at work is told its instructions again", () => {
  it("with the next message, once", async () => {
    const steps = [until("a"), { compact: true }, until("b"), until("c"), { say: "ok" }];
    const { pool, folder, post, cursorOf } = newMailPool({ GO: [steps] });
    const needs = (): boolean | undefined => readAgent(folder, "claude")?.needs_briefing;
    const offered = (n: number): Promise<unknown> =>
      waitFor(() => fs.existsSync(join(pool.state, "say", "x", `${n}.offer.json`)), {
        what: `offer ${n}`,
      });
    const readUpTo = (n: number): Promise<unknown> =>
      waitFor(() => cursorOf("claude") === n, { what: `message ${n} to be read` });
    pool.drop("x", { agent: "claude", prompt: "GO", title: "the job", cwd: pool.dir });
    await pool.start();
    await waitFor(() => streamsOf(pool).join().includes("-e a;"), { what: "the tool call" });
    post({ text: "before" });
    await offered(1);
    expect(needs()).toBe(false);
    go(pool, "a");
    await readUpTo(1);
    await waitFor(() => needs() === true, { what: "the compaction to be noted" });
    expect(readAgent(folder, "claude")?.compacted_at).toBeGreaterThan(0);
    post({ text: "after" });
    await offered(2);
    expect(needs()).toBe(true);
    go(pool, "b");
    await readUpTo(2);
    await waitFor(() => needs() === false, { what: "the instructions to be read" });
    post({ text: "later" });
    await offered(3);
    go(pool, "c");
    await pool.result("x");
    await readUpTo(3);
    const stream = streamsOf(pool).join();
    const echoes = stream
      .split("\n")
      .filter((line) => line.includes('"isReplay":true'))
      .map((line) => (JSON.parse(line) as { message: { content: unknown } }).message)
      .map(({ content }) => JSON.stringify(content));
    const isTold = (text: string): boolean[] =>
      echoes.filter((one) => one.includes(`> ${text}`)).map((one) => one.includes("You are the"));
    expect([isTold("before"), isTold("after"), isTold("later")]).toEqual([
      [false],
      [true],
      [false],
    ]);
    expect(echoes.filter((one) => one.includes("You are the"))).toHaveLength(2);
  });

  it("after a SIGKILL of everything by the packet of the next run, and not once more", async () => {
    const turns = [
      [{ compact: true }, until("a"), { say: "no" }],
      [until("b"), { say: "ok" }],
    ];
    const { pool, folder, post, cursorOf } = newMailPool({ GO: [turns[0] ?? []] }, [
      turns[1] ?? [],
    ]);
    const needs = (): boolean | undefined => readAgent(folder, "claude")?.needs_briefing;
    pool.drop("x", { agent: "claude", prompt: "GO", title: "the job", cwd: pool.dir });
    await pool.start();
    await waitFor(() => needs() === true, { what: "the compaction to be noted" });
    await pool.killAll();
    expect(needs()).toBe(true);
    await pool.start();
    await waitFor(() => needs() === false, { what: "the packet to be read", timeoutMs: 60_000 });
    post();
    await waitFor(() => fs.existsSync(join(pool.state, "say", "x", "1.offer.json")), {
      what: "the offer",
    });
    go(pool, "b");
    await pool.result("x");
    await waitFor(() => cursorOf("claude") === 1, { what: "the mail" });
    expect(toldTo(pool).map((text) => text.split("You are the agent").length)).toEqual([2, 2]);
    expect(streamsOf(pool).at(-1)?.split('"> look at X').length).toBeGreaterThan(0);
    expect(needs()).toBe(false);
  });

  it("codex exec, which takes no message while it runs, is told by its next packet", async () => {
    const { pool, folder, post, cursorOf } = newMailPool({ GO: [[{ compact: true }, until("a")]] });
    pool.drop("x", { agent: "codex", prompt: "GO", title: "the job", cwd: pool.dir });
    await pool.start();
    await waitFor(() => readAgent(folder, "codex")?.needs_briefing === true, {
      what: "the compaction to be noted",
    });
    expect(readAgent(folder, "codex")?.session_id).toBeTruthy();
    go(pool, "a");
    await pool.result("x");
    expect(readAgent(folder, "codex")?.needs_briefing).toBe(true);
    post({ to: ["codex"] });
    // The exit of the run was told before or after, so the mail has the number 1 or 2.
    await waitFor(() => cursorOf("codex") > 0, { what: "the mail", timeoutMs: 60_000 });
    await waitFor(() => readAgent(folder, "codex")?.needs_briefing === false, {
      what: "the packet to be read",
    });
  });
});
