/** `say --to … --when … --wait …`: what each of them means for an agent at work and for one that sleeps. Through real processes. */
import fs from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import type { MailFolder } from "../../../src/parts/mail/store/mail-folder.ts";
import { MessageReader } from "../../../src/parts/mail/store/read-messages.ts";
import { newBench } from "../../agents/runs/bench.ts";
import { UNTIL_GO } from "../../agents/talk/talk-pool.ts";
import type { Pool } from "../../support/pool.ts";
import { takeSome } from "../../support/take-some.ts";
import { waitFor } from "../../support/wait-for.ts";
import { newMailPool, streamsOf, wakesOf } from "./mail-pool.ts";

takeSome();

const BIN = fileURLToPath(new URL("../../../bin/mailchute.js", import.meta.url));
const CLI = `${process.execPath} ${BIN}`;
const SLOW_MS = 60_000;
const AT_WORK = { GO: [[{ run: UNTIL_GO }, { say: "Done." }]] };

async function startWork(agent: string) {
  const mail = newMailPool(AT_WORK);
  const { pool } = mail;
  pool.drop("a", { agent, prompt: "GO", cwd: pool.dir });
  await pool.start();
  await waitFor(() => streamsOf(pool).join().includes("until test"), { what: "the tool call" });
  return mail;
}

const idsOf = (folder: MailFolder): string[] =>
  [...new MessageReader(folder).next()].map(({ id }) => id);
const letGo = (pool: Pool): void => fs.writeFileSync(join(pool.dir, "go"), "");
const say = (agent: string, ...more: string[]): string[] => [
  ..."say --scope unknown:main --to".split(" "),
  agent,
  "look at X",
  ...more,
];

describe("an agent at work", () => {
  it("gets it at its next step: it is offered in the tool call, and read after it", async () => {
    const { pool, folder } = await startWork("claude");
    const offered = await pool.run(say("claude", "--wait", "offered", "--when", "next"));
    expect(offered).toMatchObject({ code: 0, stdout: expect.stringMatching(/: offered\n$/) });
    const recorded = await pool.run(say("claude", "--wait", "recorded"));
    expect(recorded).toMatchObject({ code: 0, stdout: expect.stringMatching(/: recorded\n$/) });
    const late = await pool.run(say("claude", "--wait", "seen", "--timeout", "1500ms"));
    // The next ones are offered when the first one is read.
    expect(late).toMatchObject({ code: 124, stdout: expect.stringMatching(/: recorded\n$/) });
    const seen = pool.spawn(say("claude", "--wait", "seen", "--id", "last"));
    await waitFor(() => idsOf(folder).includes("last"), { what: "the last message" });
    letGo(pool);
    expect(await seen.ended).toMatchObject({ exitCode: 0 });
    expect(seen.stdout()).toMatch(/: read\n$/);
    expect(await pool.result("a")).toMatchObject({ attempts: 1 });
  });

  it("ends its turn for what is said now, also when it has not read what it was offered before", async () => {
    const { pool, cursorOf } = await startWork("claude");
    await pool.run(say("claude", "--wait", "offered"));
    const seen = await pool.run(say("claude", "--when", "now", "--wait", "seen"));
    expect(seen).toMatchObject({ code: 0, stdout: expect.stringMatching(/: read\n$/) });
    expect(await pool.result("a", SLOW_MS)).toMatchObject({ output: "ok", attempts: 1 });
    await waitFor(() => cursorOf("claude") === 2, { what: "both to count as read" });
    expect(streamsOf(pool)).toHaveLength(1);
    expect(streamsOf(pool)[0]).toContain("aborted_tools");
  });

  it.each(["claude", "server"])("of kind %s ends its turn for what is said now", async (agent) => {
    const { pool, cursorOf } = await startWork(agent);
    const seen = await pool.run(say(agent, "--when", "now", "--wait", "read", "--json"));
    const address = `unknown:main:${agent}`;
    expect(JSON.parse(seen.stdout)).toMatchObject({ state: "seen", states: { [address]: "seen" } });
    await waitFor(() => cursorOf(agent) === 1, { what: "it to count as read" });
    expect(await pool.result("a", SLOW_MS)).toMatchObject({ output: "ok", attempts: 1 });
    expect(streamsOf(pool)[0]).toMatch(/aborted_tools|interrupted/);
  });

  it("gets what is said for its idle time in a run of its own", async () => {
    const { pool, folder } = await startWork("claude");
    const args = say("claude", "--when", "idle", "--wait", "offered");
    const late = await pool.run([...args, "--timeout", "300ms"]);
    expect(late).toMatchObject({ code: 124, stdout: expect.stringMatching(/: recorded\n$/) });
    expect(late.stderr).toContain("claude: it is at work");
    const seen = pool.spawn(say("claude", "--when", "idle", "--wait", "seen", "--id", "last"));
    await waitFor(() => idsOf(folder).includes("last"), { what: "the last message" });
    letGo(pool);
    expect(await pool.result("a", SLOW_MS)).toMatchObject({ output: "Done." });
    expect(await seen.ended).toMatchObject({ exitCode: 0 });
    expect(wakesOf(pool)).toHaveLength(1);
    expect(streamsOf(pool).filter((text) => text.includes("look at X"))).toHaveLength(1);
  });

  it("gets mail that waits for its idle time with mail that comes behind it", async () => {
    const { pool, post, cursorOf } = await startWork("claude");
    post({ when: "idle", text: "for later" });
    post({ text: "for now" });
    await waitFor(() => fs.existsSync(join(pool.state, "say", "a", "1.json")), {
      what: "the mail",
    });
    const said = fs.readFileSync(join(pool.state, "say", "a", "1.json"), "utf8");
    expect(said.indexOf("for later")).toBeLessThan(said.indexOf("for now"));
    expect(said.indexOf("for later")).toBeGreaterThan(0);
    letGo(pool);
    await waitFor(() => cursorOf("claude") === 2, { what: "the mail to be read" });
  });
});

it("an agent that sleeps is woken, and then it is read", async () => {
  const { pool } = newMailPool();
  await pool.start();
  const seen = await pool.run(say("claude", "--wait", "seen"));
  expect(seen).toMatchObject({ code: 0, stdout: expect.stringMatching(/: read\n$/) });
});

it("what cannot come further is told with its reason, and the wait ends at its time", async () => {
  const { pool } = newMailPool();
  // The reason is told after a second, at one of the looks of a busy machine.
  const wait = ["--wait", "offered", "--timeout", "4s"];
  const reasons = {
    human: "human: a person reads it with: mailchute mail --ack",
    nobody: "nobody: there is no agent of this name, so it waits for one",
  };
  for (const [name, reason] of Object.entries(reasons)) {
    const late = await pool.run(say(name, ...wait));
    expect(late).toMatchObject({ code: 124, stderr: expect.stringContaining(reason) });
  }
  await pool.start();
  await pool.stop();
  const late = await pool.run(say("claude", ...wait));
  expect(late.code).toBe(124);
  expect(late.stderr).toContain("claude: no supervisor runs for");
  await pool.run(["mail", "--ack", "--scope", "unknown:main"]);
  const first = "say x --to human --id m1 --scope unknown:main";
  const read = await pool.run(first.split(" "));
  expect(read.code).toBe(0);
  await pool.run(["mail", "--ack", "--scope", "unknown:main"]);
  const seen = await pool.run(`${first} --wait seen`.split(" "));
  expect(seen).toMatchObject({ code: 0, stdout: "message m1 to unknown:main:human: read\n" });
});

it("a run interrupts no other agent", async () => {
  const turns = [
    [
      { run: `${CLI} say hi --to ann --when now 2> "$MAILCHUTE_STATE/../out"; true` },
      { say: "done" },
    ],
  ];
  const { pool } = newBench([
    { name: "Coder", kind: "claude", turns, settings: { account: "coder" } },
  ]);
  fs.appendFileSync(join(pool.state, "config.yaml"), "data: .\n");
  pool.drop("a", { agent: "Coder", prompt: "go" });
  await pool.start();
  await pool.result("a", SLOW_MS);
  expect(fs.readFileSync(join(pool.dir, "out"), "utf8")).toContain(
    "a run interrupts no other agent",
  );
});

it("a message to a task is for now or for the next step, and seen is the same as read", async () => {
  const pool = (await startWork("claude")).pool;
  expect(await pool.run(["say", "a", "x", "--when", "idle"])).toMatchObject({ code: 2 });
  const seen = await pool.run(["say", "a", "look at X", "--when", "now", "--wait", "seen"]);
  expect(seen).toMatchObject({ code: 0, stdout: "message 1 to a: read\n" });
  expect(await pool.result("a", SLOW_MS)).toMatchObject({ output: "ok", attempts: 1 });
});
