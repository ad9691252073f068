/** A supervisor delivers mail: into a run that is on, or by waking the agent; through real processes, with stand-ins for the programs. */
import fs from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { readOffer, writeOffer } from "../../../src/parts/mail/delivery/offers.ts";
import { wakeIdOf } from "../../../src/parts/mail/delivery/wake-rules.ts";
import { readCursor } from "../../../src/parts/mail/store/cursors.ts";
import { unreadOf } from "../../../src/parts/mail/store/inbox.ts";
import { MessageReader } from "../../../src/parts/mail/store/read-messages.ts";
import { UNTIL_GO } from "../../agents/talk/talk-pool.ts";
import { newPool, QUICK_CONFIG } from "../../support/pool.ts";
import { takeSome } from "../../support/take-some.ts";
import { tempDir } from "../../support/temp-dir.ts";
import { waitFor } from "../../support/wait-for.ts";
import { newMailPool, streamsOf, wakesOf } from "./mail-pool.ts";

takeSome();

const BIN = fileURLToPath(new URL("../../../bin/mailchute.js", import.meta.url));
const HOOK = fileURLToPath(new URL("../../crash/hook.cjs", import.meta.url));
const AT_WORK = { GO: [[{ run: UNTIL_GO }, { say: "Done." }]] };

const occurrences = (text: string, part: string): number => text.split(part).length - 1;

describe("seed task 6: a mention wakes its agent", () => {
  it("once for messages that come together, and what it has read is marked with proof", async () => {
    const { pool, folder, post, cursorOf } = newMailPool();
    const { child } = await pool.start();
    // However long this takes here: no look comes in between.
    child.kill("SIGSTOP");
    const ids = [post(), post({ to: [], text: "and @claude, at Y" }), post({ to: ["codex"] })];
    child.kill("SIGCONT");
    await waitFor(() => cursorOf("claude") === 2 && cursorOf("codex") === 3, {
      what: "both agents to read their mail",
      timeoutMs: 30_000,
    });
    expect(wakesOf(pool)).toHaveLength(2);
    const [stream = ""] = streamsOf(pool).filter((text) => text.includes("and @claude, at Y"));
    expect(stream).toContain("You are the agent claude in the scope unknown:main");
    for (const part of ["From ann at ", "> look at X", ids[0] ?? "", ids[1] ?? ""])
      expect(stream).toContain(part);
    expect(unreadOf(folder, "claude").messages).toEqual([]);
    await waitFor(() => readOffer(folder, "claude") === undefined, { what: "the offer to end" });
    const cursors = folder.path("cursors", "claude");
    expect(JSON.parse(fs.readFileSync(join(cursors, "1.json"), "utf8"))).toMatchObject({
      v: 1,
      upto: 2,
      by: "run",
    });
  });

  it("once for 200 messages in a second, all of which it can read", async () => {
    const reading = { run: `${process.execPath} ${BIN} mail --ack > "$MAILCHUTE_STATE/../mail"` };
    const { pool, folder, post, cursorOf } = newMailPool({}, [[reading, { say: "ok" }]]);
    const { child } = await pool.start();
    const texts = Array.from({ length: 200 }, (_, n) => `> message ${n}, of ann`);
    child.kill("SIGSTOP");
    for (const text of texts) post({ text: text.slice(2) });
    child.kill("SIGCONT");
    await waitFor(() => cursorOf("claude") >= 200, { what: "all mail", timeoutMs: 60_000 });
    const [wake = "", ...more] = wakesOf(pool);
    await pool.result(wake, 60_000);
    expect(unreadOf(folder, "claude").messages).toEqual([]);
    expect([more, wakesOf(pool)]).toEqual([[], [wake]]);
    const [stream = ""] = streamsOf(pool);
    expect(stream).toContain("more unread: mailchute mail");
    const mail = fs.readFileSync(join(pool.dir, "mail"), "utf8");
    const isRead = (text: string): boolean => stream.includes(text) || mail.includes(text.slice(2));
    expect(texts.filter((text) => !isRead(text))).toEqual([]);
  });

  it("outside of a repository also when its settings give its tasks a worktree", async () => {
    const { pool, post, cursorOf } = newMailPool({}, undefined, {
      worktree: "auto",
      land: "merge",
    });
    post();
    await pool.start();
    await waitFor(() => cursorOf("claude") === 1, {
      what: "the mail to be read",
      timeoutMs: 30_000,
    });
    const [wake = ""] = wakesOf(pool);
    expect(await pool.result(wake)).toMatchObject({ status: "completed" });
  });

  it("also by a file in post/inbox, and for mail that came while nothing ran", async () => {
    const { pool, post, cursorOf } = newMailPool();
    post();
    const inbox = join(pool.state, "post", "inbox");
    fs.mkdirSync(join(pool.state, "post"), { mode: 0o700 });
    fs.mkdirSync(inbox, { mode: 0o700 });
    fs.writeFileSync(
      join(inbox, "m1.json"),
      JSON.stringify({ from_agent: "ci", to: "claude", content: "red" }),
    );
    await pool.start(["--drain"]).catch(() => undefined);
    await waitFor(() => cursorOf("claude") === 2, { what: "the mail", timeoutMs: 30_000 });
    expect(fs.existsSync(join(pool.state, "post", "outbox", "m1_result.json"))).toBe(true);
    expect(wakesOf(pool)).toHaveLength(1);
    expect(streamsOf(pool).join()).toContain("> red");
  });

  it("and lists the agents of the settings", async () => {
    const { pool } = newMailPool();
    await pool.start();
    // They are made at the first look for mail, a moment after the start.
    const agents = async (): Promise<unknown> => {
      const { stdout } = await pool.run(["agents", "--json", "--scope", "unknown:main"]);
      return JSON.parse(stdout).agents;
    };
    await expect
      .poll(agents, { timeout: 120_000 })
      .toMatchObject([
        { name: "claude", type: "claude", inc: 1, home: pool.state },
        { name: "codex", type: "codex" },
        { name: "server" },
      ]);
  });
});

it("an agent that runs gets its mail in that run, and is not woken", async () => {
  const { pool, post, cursorOf } = newMailPool(AT_WORK);
  pool.drop("a", { agent: "claude", prompt: "GO", cwd: pool.dir });
  await pool.start();
  await waitFor(() => streamsOf(pool).join().includes("until test"), { what: "the tool call" });
  post();
  await waitFor(() => fs.existsSync(join(pool.state, "say", "a", "1.offer.json")), {
    what: "the offer",
  });
  expect(cursorOf("claude")).toBe(0);
  fs.writeFileSync(join(pool.dir, "go"), "");
  await pool.result("a");
  await waitFor(() => cursorOf("claude") === 1, { what: "the proof" });
  expect(wakesOf(pool)).toEqual([]);
  expect(pool.runs()).toHaveLength(1);
  expect(occurrences(streamsOf(pool).join(), "> look at X")).toBeGreaterThan(0);
});

it("mail that comes after a person has read the rest for the agent makes no second wake-up before the first has begun", async () => {
  const { pool, post, cursorOf } = newMailPool();
  const waiting = (): string[] =>
    fs.readdirSync(pool.inbox).filter((name) => name.startsWith("wake."));
  await pool.start();
  expect((await pool.run(["pause", "--wait"])).code).toBe(0);
  post();
  await waitFor(() => waiting().length === 1, { what: "the wake-up", timeoutMs: 30_000 });
  expect((await pool.run(["mail", "claude", "--ack", "--scope", "unknown:main"])).code).toBe(0);
  post({ text: "the second one" });
  // This one came later: when its agent is to be woken, the other one was looked at, too.
  post({ to: ["codex"], text: "for codex" });
  const agents = (): Set<string | undefined> =>
    new Set(waiting().map((name) => name.split(".")[1]));
  await waitFor(() => agents().size === 2, { what: "the wake-up of codex", timeoutMs: 30_000 });
  expect(waiting()).toHaveLength(2);
  await pool.run(["resume"]);
  await waitFor(() => cursorOf("claude") === 2, { what: "the second message", timeoutMs: 30_000 });
  expect(streamsOf(pool).join()).toContain("> the second one");
});

it("a wake-up whose mail a person has read by then ends without a run of its agent, and is not told of", async () => {
  const { pool, folder, post } = newMailPool();
  await pool.start();
  expect((await pool.run(["pause", "--wait"])).code).toBe(0);
  post();
  const waiting = (): string[] =>
    fs.readdirSync(pool.inbox).filter((name) => name.startsWith("wake."));
  await waitFor(() => waiting().length === 1, { what: "the wake-up", timeoutMs: 30_000 });
  const id = waiting()[0]?.replace(".json", "") ?? "";
  expect((await pool.run(["mail", "claude", "--ack", "--scope", "unknown:main"])).code).toBe(0);
  await pool.run(["resume"]);
  expect(await pool.result(id)).toMatchObject({
    verdict: "pass",
    verdict_reason: "nothing was unread, so the agent was not started",
  });
  await waitFor(() => readOffer(folder, "claude") === undefined, { what: "the offer to end" });
  const notes = (): string[] =>
    fs.readdirSync(join(pool.state, "exits")).filter((name) => name !== ".tmp");
  await waitFor(() => notes().length === 0, { what: "the note to go" });
  expect(streamsOf(pool).join("")).toBe("");
  expect([...new MessageReader(folder).next()]).toHaveLength(1);
  expect(readCursor(folder, "claude")).toMatchObject({ n: 1, fails: 0 });
});

it("an agent with one slot has one run at a time, tasks of people and wake-ups together", async () => {
  const { pool, post, cursorOf } = newMailPool({}, undefined, { slots: 1 });
  await pool.start();
  expect((await pool.run(["pause", "--wait"])).code).toBe(0);
  post();
  const waiting = (): string[] =>
    fs.readdirSync(pool.inbox).filter((name) => name.startsWith("wake."));
  await waitFor(() => waiting().length === 1, { what: "the wake-up", timeoutMs: 30_000 });
  for (const id of ["a", "b"]) pool.drop(id, { agent: "claude", prompt: "hi", cwd: pool.dir });
  await pool.run(["resume"]);
  await waitFor(() => cursorOf("claude") === 1, { what: "the mail", timeoutMs: 60_000 });
  for (const id of ["a", "b"]) await pool.result(id, 60_000);
  await waitFor(() => pool.settledCount() === 3, { what: "all to settle", timeoutMs: 30_000 });
  const steps = pool.events().map(({ event }) => event);
  const runs = steps.filter((event) => event === "started" || event === "completed");
  expect(runs).toEqual(["started", "completed", "started", "completed", "started", "completed"]);
});

describe("after a crash", () => {
  it("mail that was offered to a run and not read is offered again, with the same id", async () => {
    const { pool, post, cursorOf } = newMailPool(AT_WORK);
    pool.drop("a", { agent: "claude", prompt: "GO", cwd: pool.dir });
    await pool.start();
    await waitFor(() => streamsOf(pool).join().includes("until test"), { what: "the tool call" });
    const id = post();
    await waitFor(() => fs.existsSync(join(pool.state, "say", "a", "1.offer.json")), {
      what: "the offer",
    });
    await pool.killAll();
    expect(cursorOf("claude")).toBe(0);
    fs.writeFileSync(join(pool.dir, "go"), "");
    await pool.start();
    await waitFor(() => cursorOf("claude") === 1, { what: "the mail", timeoutMs: 30_000 });
    expect(streamsOf(pool).join()).toContain(id);
    expect(wakesOf(pool)).toEqual([]);
  });

  it("an offer that was written and not made is made: one wake-up, said once", async () => {
    const { pool, folder, post, cursorOf } = newMailPool();
    post();
    const text = "Mail for you.\n\n> look at X";
    const task = wakeIdOf({ ...folder.scope, name: "claude" }, 1, readCursor(folder, "claude"));
    const offer = { v: 1, task, isWake: true, n: 0, upto: 1, text, hops: 0 } as const;
    writeOffer(folder, "claude", { ...offer, say: null });
    await pool.start();
    await waitFor(() => cursorOf("claude") === 1, { what: "the mail", timeoutMs: 30_000 });
    expect(wakesOf(pool)).toEqual([task]);
    expect(fs.readdirSync(join(pool.state, "say", task)).sort()).toContain("1.json");
    expect(fs.existsSync(join(pool.state, "say", task, "2.json"))).toBe(false);
  });

  it("of the supervisor at many moments, the mail is read, by one wake-up for each level", async () => {
    const { pool, folder, post } = newMailPool();
    const isRead = (): boolean => unreadOf(folder, "claude").messages.length === 0;
    for (let round = 1; round <= 4; round++) {
      post({ text: `message ${round}` });
      await pool.start();
      // Sooner or later: before, while and after the agent is woken.
      const untilMs = Date.now() + round * 900;
      await waitFor(() => Date.now() > untilMs || isRead(), { what: "a moment" });
      await pool.killAll();
    }
    await pool.start();
    await waitFor(isRead, { what: "all mail", timeoutMs: 30_000 });
    const streams = streamsOf(pool).join();
    for (let round = 1; round <= 4; round++) expect(streams).toContain(`> message ${round}`);
    // No two wake-ups have a name in common, and none was submitted twice.
    const ids = pool.results().map((record) => record.task_id);
    expect(new Set(ids).size).toBe(ids.length);
  });
});

it("a wake-up that fails before the agent has read leaves the mail unread, and counts", async () => {
  const { pool, folder, post } = newMailPool({}, [[{ exit: 3 }]]);
  await pool.start();
  post();
  await waitFor(() => readCursor(folder, "claude").fails === 1, {
    what: "the failure",
    timeoutMs: 60_000,
  });
  expect(readCursor(folder, "claude")).toMatchObject({ n: 1, upto: 0 });
  expect(unreadOf(folder, "claude").messages).toHaveLength(1);
  // The failure is noted before the offer goes.
  await waitFor(() => readOffer(folder, "claude") === undefined, { what: "the end of the offer" });
});

it("mail that follows from 12 wake-ups is held and told, and a person's word passes", async () => {
  const { pool, post, cursorOf } = newMailPool();
  await pool.start();
  post({ via: "run", from: "codex", hops: 12 });
  await waitFor(() => pool.alerts().some((alert) => alert["alert"] === "mail_held"), {
    what: "the alert",
    timeoutMs: 30_000,
  });
  expect(wakesOf(pool)).toEqual([]);
  post({ from: "human", text: "go on" });
  await waitFor(() => cursorOf("claude") === 2, { what: "the mail", timeoutMs: 30_000 });
  expect(wakesOf(pool)).toHaveLength(1);
});

it("mail of an agent of another project wakes nobody before a person passes it on", async () => {
  const { pool, post, cursorOf } = newMailPool();
  await pool.start();
  const scope = { project: "backend", branch: "main" };
  const id = post({ scope, from: "ann", via: "run", to: ["unknown:main:claude"] });
  await waitFor(() => JSON.stringify(pool.alerts()).includes(`mailchute release ${id}`), {
    what: "the alert",
    timeoutMs: 30_000,
  });
  expect(wakesOf(pool)).toEqual([]);
  const released = await pool.run(["release", id, "--scope", "unknown:main"]);
  expect(released).toMatchObject({ code: 0 });
  await waitFor(() => cursorOf("claude") === 2, { what: "the mail", timeoutMs: 30_000 });
  expect(streamsOf(pool).join()).toContain("backend:main:ann wrote");
});

describe("a pool without mail", () => {
  /** How many calls a supervisor makes on files of mail while it runs a task. */
  async function callsFor(config: string): Promise<number> {
    const report = join(tempDir(), "report");
    const env: Record<string, string> = { NODE_OPTIONS: `--require ${HOOK}` };
    const pool = newPool({ config: `${QUICK_CONFIG}${config}`, env });
    const only = "^\\w+ (post|scopes)";
    const plan = { role: "main", root: pool.state, at: 0, hasReads: true, only, report };
    env["MAILCHUTE_CRASH"] = JSON.stringify(plan);
    const running = pool.spawn(["run", "--drain"]);
    pool.drop("a", { exec: ["true"] });
    expect((await running.ended).exitCode).toBe(0);
    expect(pool.settledCount()).toBe(1);
    const lines = fs.readFileSync(report, "utf8").trimEnd().split("\n");
    return JSON.parse(lines.at(-1) ?? "{}").count;
  }

  it("makes no call for mail, and no file", async () => {
    expect(await callsFor("")).toBe(0);
    expect(await callsFor("mail_enabled: true\ndata: .\n")).toBeGreaterThan(10);
  });
});
