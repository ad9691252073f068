/** Mail into the real programs: into a long tool call, between the end of the work and its settlement, around the end of runs, and after a crash. */
import fs from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import type { Scenario } from "../../../src/agents/mock-api/script.ts";
import type { Offer } from "../../../src/agents/stream/task-messages.ts";
import { OUTSIDE } from "../../../src/parts/mail/scope/scope.ts";
import { type Cursor, readCursor } from "../../../src/parts/mail/store/cursors.ts";
import { unreadOf } from "../../../src/parts/mail/store/inbox.ts";
import { MailFolder } from "../../../src/parts/mail/store/mail-folder.ts";
import { readJson } from "../../support/pool.ts";
import { waitFor } from "../../support/wait-for.ts";
import { type AgentBench, newAgentBench, PROGRAMS } from "./agent-bench.ts";

/** Programs start slowly on a machine that has other work. */
const SLOW_MS = 60_000;
/** For a test with many runs. */
const LONG_TEST_MS = 900_000;
/** codex ends the wait for a tool of its own accord after about ten seconds. */
const TOOL_S = { claude: 60, codex: 5 };
/** claude refuses a command that is nothing but a long sleep. */
const longTool = (seconds: number): string =>
  `echo > began; sh -c 'exec sleep ${seconds}'; echo > whole; echo over`;
const untilGo = (n: number): string =>
  `echo > began${n}; until test -e go${n}; do sleep 0.1; done; echo went`;

interface MailBench extends AgentBench {
  cursor: () => Cursor;
  /** Who moved the cursor so far. */
  movedBy: () => string;
  unread: () => number;
  /** Writes to the agent as a person does. */
  say: (text: string) => Promise<void>;
  /** All lines of all runs of a task, in order. */
  lines: (task: string) => string[];
}

async function newMailBench(
  kind: "claude" | "codex",
  agent: object,
  scenario: Scenario,
): Promise<MailBench> {
  const settings = { mail_enabled: true, data: "." };
  const bench = await newAgentBench(kind, scenario, { agent: { ...agent }, settings });
  const { pool } = bench;
  const folder = new MailFolder({ dataDir: pool.state, isDurable: false }, OUTSIDE);
  return {
    ...bench,
    cursor: () => readCursor(folder, "coder"),
    movedBy: () => {
      const { n } = readCursor(folder, "coder");
      return readJson<{ by: string }>(folder.path("cursors", "coder", `${n}.json`))?.by ?? "";
    },
    unread: () => unreadOf(folder, "coder").messages.length,
    say: async (text) => {
      const said = await pool.run(["say", text, "--to", "coder", "--scope", "unknown:main"]);
      expect(said).toMatchObject({ code: 0 });
    },
    lines: (task) =>
      pool
        .runs()
        .filter((run) => run.includes(`${task}@`))
        .sort()
        .map((run) => join(pool.state, "runs", run, "events.jsonl"))
        .flatMap((path) => (fs.existsSync(path) ? fs.readFileSync(path, "utf8").split("\n") : [])),
  };
}

/** The agent is in a tool call. */
function hasBegun(dir: string, n: number | "" = ""): Promise<boolean> {
  return waitFor(() => fs.existsSync(join(dir, `began${n}`)), {
    what: "the tool call",
    timeoutMs: SLOW_MS,
  });
}

/** The uuid under which the first message to the task was written to the program. */
async function offered({ pool }: MailBench, task: string): Promise<string> {
  const path = join(pool.state, "say", task, "1.offer.json");
  const offer = await waitFor(() => readJson<Offer>(path), { what: "the offer" });
  expect(offer.via).toBe("message");
  return offer.uuid;
}

const indexOf = (lines: readonly string[], ...parts: readonly string[]): number =>
  lines.findIndex((line) => parts.every((part) => line.includes(part)));

/** How each program says that a tool call has ended, and that the model has a message. */
const SIGNS = {
  claude: { toolEnd: ['"tool_result"', "over"], receipt: ['"command_lifecycle"', '"started"'] },
  codex: { toolEnd: ['"item/completed"', "over\\n"], receipt: ['"item/started"', '"userMessage"'] },
} as const;

const turnsOf = ({ api }: AgentBench) => api.requests.filter(({ kind }) => kind === "turn");
/** All that the model was told in its last request. */
const lastTold = (bench: AgentBench): string => turnsOf(bench).at(-1)?.messages.join("\n") ?? "";
const occurrences = (text: string, part: string): number => text.split(part).length - 1;

/** Those that take messages while they run. */
const TALKING = PROGRAMS.filter(([name]) => name !== "codex");

describe.each(TALKING)("%s", (_, kind, agent) => {
  const toolS = TOOL_S[kind];

  it(`reads mail that comes into a tool call of ${toolS} s at the end of that call, with a receipt of its own`, async () => {
    const bench = await newMailBench(kind, agent, [{ run: longTool(toolS) }, { say: "Done." }]);
    const { pool, cursor, lines } = bench;
    await pool.start();
    const dir = bench.drop("t");
    await hasBegun(dir);
    await bench.say("look at X");
    const uuid = await offered(bench, "t");
    // It is neither read nor does it end the call.
    expect(cursor().upto).toBe(0);
    expect(fs.existsSync(join(dir, "whole"))).toBe(false);
    expect(await pool.result("t", SLOW_MS + toolS * 1000)).toMatchObject({
      output: "Done.",
      attempts: 1,
    });
    const tookMs =
      fs.statSync(join(dir, "whole")).mtimeMs - fs.statSync(join(dir, "began")).mtimeMs;
    expect(tookMs).toBeGreaterThanOrEqual(toolS * 1000 - 50);
    const { toolEnd, receipt } = SIGNS[kind];
    const all = lines("t");
    expect(indexOf(all, ...toolEnd)).toBeGreaterThan(0);
    expect(indexOf(all, ...receipt, uuid)).toBeGreaterThan(indexOf(all, ...toolEnd));
    await waitFor(() => cursor().upto === 1, { what: "the cursor" });
    expect(bench.movedBy()).toBe("run");
    // The next step of the same run has both.
    expect(turnsOf(bench)).toHaveLength(2);
    expect(lastTold(bench)).toMatch(/over[\s\S]*look at X/);
    expect(pool.runs()).toHaveLength(1);
  });

  it("reads mail that comes between its last event and the settlement in a new run of the same session", async () => {
    const bench = await newMailBench(kind, agent, [{ say: "One." }, { say: "Two." }]);
    const { pool, cursor } = bench;
    const check = `echo x >> verifying; until test -e go; do sleep 0.1; done`;
    await pool.start();
    const dir = bench.drop("t", { verify: [["sh", "-c", check]] });
    await waitFor(() => fs.existsSync(join(dir, "verifying")), {
      what: "the checks",
      timeoutMs: SLOW_MS,
    });
    await bench.say("look at X");
    await waitFor(() => fs.existsSync(join(pool.state, "say", "t", "1.json")), {
      what: "the mail of the task",
    });
    fs.writeFileSync(join(dir, "go"), "");
    expect(await pool.result("t", SLOW_MS)).toMatchObject({ output: "Two.", attempts: 1 });
    await waitFor(() => cursor().upto === 1, { what: "the cursor" });
    const told = turnsOf(bench).map(({ messages }) => messages.join("\n"));
    expect(told.map((text) => occurrences(text, "look at X"))).toEqual([0, 1]);
    expect(told[1]).toContain("One.");
    expect(fs.readFileSync(join(dir, "verifying"), "utf8")).toBe("x\nx\n");
  });

  it(
    "loses no mail that comes around the end of a run, and the model has all that counts as read",
    async () => {
      const bench = await newMailBench(kind, agent, [{ say: "Done.", times: 1000 }]);
      const { pool } = bench;
      await pool.start();
      const moments = Array.from({ length: 12 }, () => Math.round(Math.random() * 700));
      console.log(`moments (ms) ${JSON.stringify(moments)}`);
      for (const [n, ms] of moments.entries()) {
        const before = turnsOf(bench).length;
        bench.drop(`t${n}`);
        await waitFor(() => turnsOf(bench).length > before, { what: "a turn", timeoutMs: SLOW_MS });
        // Its answer is on its way: the end of the run follows within this time.
        await new Promise((resolve) => {
          setTimeout(resolve, ms);
        });
        await bench.say(`message ${n} of 12`);
      }
      await waitFor(() => bench.unread() === 0, { what: "all to be read", timeoutMs: SLOW_MS });
      const told = turnsOf(bench)
        .flatMap(({ messages }) => messages)
        .join("\n");
      for (const n of moments.keys()) expect(told).toContain(`> message ${n} of 12`);
    },
    LONG_TEST_MS,
  );

  it("reads once what was said to it before everything was killed", async () => {
    const steps = [{ run: untilGo(1) }, { say: "Done.", times: 9 }];
    const bench = await newMailBench(kind, agent, steps);
    const { pool, cursor, lines } = bench;
    await pool.start();
    const dir = bench.drop("t");
    await hasBegun(dir, 1);
    await bench.say("look at X");
    const uuid = await offered(bench, "t");
    const { receipt } = SIGNS[kind];
    const taken = kind === "claude" ? ['"queued"', uuid] : ['"result":{"turnId"'];
    await waitFor(() => indexOf(lines("t"), ...taken) >= 0, { what: "the message to be taken" });
    await pool.killAll();
    expect(indexOf(lines("t"), ...receipt, uuid)).toBe(-1);
    fs.writeFileSync(join(dir, "go1"), "");
    await pool.start();
    expect(await pool.result("t", SLOW_MS)).toMatchObject({ output: "Done." });
    await waitFor(() => cursor().upto === 1, { what: "the cursor" });
    expect(occurrences(lastTold(bench), "look at X")).toBe(1);
  });

  it("is not told again what it read in a turn in which everything was killed", async () => {
    const steps = [{ run: untilGo(1) }, { run: untilGo(2) }, { say: "Done.", times: 9 }];
    const bench = await newMailBench(kind, agent, steps);
    const { pool, cursor, lines } = bench;
    await pool.start();
    const dir = bench.drop("t");
    await hasBegun(dir, 1);
    await bench.say("look at X");
    const uuid = await offered(bench, "t");
    fs.writeFileSync(join(dir, "go1"), "");
    await hasBegun(dir, 2);
    expect(occurrences(lastTold(bench), "look at X")).toBe(1);
    await pool.killAll();
    expect(indexOf(lines("t"), ...SIGNS[kind].receipt, uuid)).toBeGreaterThan(0);
    fs.writeFileSync(join(dir, "go2"), "");
    await pool.start();
    expect(await pool.result("t", SLOW_MS)).toMatchObject({ output: "Done." });
    await waitFor(() => cursor().upto === 1, { what: "the cursor" });
    // It goes on in its session, which has the mail.
    expect(occurrences(lastTold(bench), "look at X")).toBe(1);
  });
});
