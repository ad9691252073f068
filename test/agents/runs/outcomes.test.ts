/** What a run of a coding agent comes to, case by case: outcome, attempts, the session that goes on, costs, logs. */
import fs from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { endOfFile } from "../../support/temp-dir.ts";
import { type Bench, type FakeAgent, newBench, type Step } from "./bench.ts";

interface Case {
  /** What happens. */
  what: string;
  kinds?: readonly Program[];
  turns: readonly (readonly Step[])[];
  program?: string;
  /** `output` of the result, or kind and code of the error. */
  ends: { output: unknown } | { kind: string; code: string; error?: RegExp };
  attempts?: number;
  maxAttempts?: number;
  /** Files that the task expects. */
  files?: readonly string[];
  /** Which starts resumed the session of the first one; default: all but the first. */
  starts: number;
  /** Each start begins a new session. */
  isAnew?: boolean;
  /** Turns that were paid for. */
  paid: number;
  /** Outcomes that were booked. */
  booked: readonly string[];
  /** The tools that the record lists as denied. */
  denied?: readonly string[];
  /** Some kinds of records in the agent's log. */
  logged?: readonly string[];
  /** Bytes of events.jsonl, at least. */
  bytes?: number;
  /** What is otherwise with claude. */
  claude?: Partial<Case>;
}

/** `server`: a codex app-server. */
const PROGRAMS = ["claude", "codex", "server"] as const;
type Program = (typeof PROGRAMS)[number];
const DONE = { say: "Done." };
const FULL = "Codex ran out of room in the model's context window. Start a new thread.";
const result = (more: object): Step => ({ line: { type: "result", ...more } });

const CASES: readonly Case[] = [
  {
    what: "all is well",
    turns: [[{ think: "hm" }, { run: "echo hi" }, DONE]],
    ends: { output: "Done." },
    starts: 1,
    paid: 1,
    booked: ["completed"],
    logged: ["reasoning", "tool_started", "tool_ended", "agent_message", "turn_ended"],
  },
  {
    what: "an answer of nothing: no text, no tool, no tokens",
    turns: [[{ usage: { input: 0, cached: 0, output: 0, cost: 0 } }], [DONE]],
    ends: { output: "Done." },
    attempts: 2,
    starts: 2,
    paid: 1,
    booked: ["completed"],
  },
  {
    what: "an answer of nothing in a session that has used tokens before",
    turns: [
      [{ say: "Half." }, { usage: { input: 1000, output: 30 } }, { fail: 503 }],
      [{ usage: { input: 0, cached: 0, output: 0, cost: 0 } }],
    ],
    maxAttempts: 1,
    ends: { kind: "agent", code: "ErrAgentFailed", error: /answered nothing/ },
    starts: 2,
    paid: 0,
    booked: [],
  },
  {
    what: "401 once",
    turns: [[{ fail: 401 }], [DONE]],
    ends: { output: "Done." },
    starts: 2,
    paid: 1,
    booked: ["completed"],
  },
  {
    what: "401 twice",
    turns: [[{ fail: 401 }]],
    ends: { kind: "auth", code: "ErrAuth" },
    starts: 2,
    paid: 0,
    booked: [],
  },
  {
    what: "401, then a good turn that is cut off, then 401",
    turns: [[{ fail: 401 }], [{ say: "Half." }, { exit: 1 }], [{ fail: 401 }], [DONE]],
    ends: { output: "Done." },
    attempts: 2,
    starts: 4,
    paid: 1,
    booked: ["completed"],
  },
  {
    what: "529",
    turns: [[{ fail: 529 }], [{ fail: 529 }], [DONE]],
    ends: { output: "Done." },
    starts: 3,
    paid: 1,
    booked: ["completed"],
  },
  {
    what: "a bad request",
    turns: [[{ fail: 400 }]],
    ends: { kind: "agent", code: "ErrAgentRequest" },
    starts: 1,
    paid: 0,
    booked: [],
  },
  {
    what: "flaky, then fine",
    turns: [[{ say: "Half." }, { exit: 1 }], [{ say: "More." }, { kill: "SIGKILL" }], [DONE]],
    ends: { output: "Done." },
    attempts: 3,
    starts: 3,
    paid: 1,
    booked: ["completed"],
  },
  {
    what: "SIGINT",
    turns: [[{ say: "Half." }, { kill: "SIGINT" }], [DONE]],
    ends: { output: "Done." },
    attempts: 2,
    starts: 2,
    paid: 1,
    booked: ["completed"],
    // It ends its turn with a result.
    claude: { paid: 2, booked: ["failed", "completed"] },
  },
  {
    what: "SIGTERM",
    turns: [[{ say: "Half." }, { kill: "SIGTERM" }], [DONE]],
    ends: { output: "Done." },
    attempts: 2,
    starts: 2,
    paid: 1,
    booked: ["completed"],
  },
  {
    what: "a success that is an error",
    kinds: ["claude"],
    turns: [[{ say: "Prompt is too long" }, { runaway: "prompt_too_long" }]],
    ends: { kind: "agent", code: "ErrAgentRequest" },
    maxAttempts: 1,
    starts: 1,
    paid: 1,
    booked: ["failed"],
  },
  {
    what: "a success while a background task runs",
    kinds: ["claude"],
    turns: [[{ run: "sleep 0.3; echo built", background: true }, { say: "It runs." }]],
    ends: { output: "The task has ended." },
    starts: 1,
    paid: 2,
    booked: ["completed"],
  },
  {
    what: "an error after a good result",
    kinds: ["claude"],
    turns: [
      [DONE, result({ subtype: "success", is_error: false, result: "Done." }), { fail: 400 }],
    ],
    ends: { kind: "agent", code: "ErrAgentRequest" },
    starts: 1,
    paid: 0,
    booked: [],
  },
  {
    what: "a result for an earlier message",
    kinds: ["claude"],
    turns: [
      [
        result({ subtype: "success", is_error: false, result: "Old.", user_message_uuids: ["u"] }),
        { exit: 0 },
      ],
      [DONE],
    ],
    ends: { output: "Done." },
    attempts: 2,
    starts: 2,
    paid: 1,
    booked: ["completed"],
  },
  {
    what: "an error notice, then success",
    turns: [[{ notice: "Reconnecting... 1/5" }, { notice: "something odd" }, DONE]],
    ends: { output: "Done." },
    starts: 1,
    paid: 1,
    booked: ["completed"],
  },
  {
    what: "no end of the stream, exit code 0",
    turns: [[{ say: "Half." }, { exit: 0 }]],
    ends: { kind: "interrupted", code: "ErrInterrupted", error: /has no end \(exit code 0\)/ },
    attempts: 2,
    maxAttempts: 2,
    starts: 2,
    paid: 0,
    booked: [],
  },
  {
    what: "all tools denied",
    turns: [[{ deny: "Bash" }, { say: "I may not." }]],
    ends: { kind: "permission", code: "ErrPermission", error: /permissions of the agent/ },
    starts: 1,
    paid: 1,
    booked: ["failed"],
    denied: ["command_execution"],
    claude: { denied: ["Bash"] },
  },
  {
    what: "tools denied, one of them twice, and another way that worked",
    turns: [[{ deny: "Bash" }, { deny: "Edit" }, { deny: "Bash" }, { run: "true" }, DONE]],
    ends: { output: "Done." },
    starts: 1,
    paid: 1,
    booked: ["completed"],
    denied: ["command_execution"],
    claude: { denied: ["Bash", "Edit"] },
  },
  {
    what: "a tool denied, another way, and a file that is not there",
    turns: [[{ deny: "Bash" }, { run: "true" }, DONE]],
    files: ["report.md"],
    maxAttempts: 1,
    ends: { kind: "verify", code: "ErrVerify", error: /report.md is not/ },
    starts: 1,
    paid: 1,
    booked: ["completed", "failed"],
    denied: ["command_execution"],
    claude: { denied: ["Bash"] },
  },
  {
    what: "a session that became too long",
    kinds: ["claude"],
    turns: [[{ run: "true" }, { say: "Half." }, { runaway: "prompt_too_long" }], [DONE]],
    ends: { output: "Done." },
    starts: 2,
    isAnew: true,
    paid: 2,
    booked: ["lost_session", "completed"],
  },
  {
    what: "a thread that became too long",
    kinds: ["codex", "server"],
    turns: [[{ run: "true" }, { say: "Half." }, { fail: 400, message: FULL }], [DONE]],
    ends: { output: "Done." },
    starts: 2,
    isAnew: true,
    paid: 1,
    booked: ["completed"],
  },
  {
    what: "a thread that is too long again in its new session",
    kinds: ["codex", "server"],
    turns: [[{ run: "true" }, { fail: 400, message: FULL }]],
    ends: { kind: "agent", code: "ErrAgentRequest" },
    starts: 2,
    isAnew: true,
    paid: 0,
    booked: [],
  },
  {
    what: "nothing said, and no file",
    turns: [[{ usage: {} }]],
    files: ["report.md"],
    ends: { kind: "permission", code: "ErrPermission", error: /said nothing.*report.md is not/ },
    starts: 1,
    paid: 1,
    booked: ["completed", "failed"],
  },
  {
    what: "an empty stream",
    turns: [],
    program: "#!/bin/sh\nexit 0\n",
    ends: { kind: "interrupted", code: "ErrInterrupted" },
    maxAttempts: 1,
    starts: 0,
    paid: 0,
    booked: [],
  },
  {
    what: "binary rubbish",
    turns: [],
    program: "#!/bin/sh\nhead -c 1000000 /dev/urandom\n",
    ends: { kind: "interrupted", code: "ErrInterrupted" },
    maxAttempts: 1,
    starts: 0,
    paid: 0,
    booked: [],
    bytes: 1_000_000,
  },
  {
    what: "rubbish between the lines",
    turns: [
      [
        { line: "\u0000\u0007 no {json" },
        { line: '{"type":["result"]}' },
        { line: "[1,2]" },
        { line: { type: "from the future", method: "from the future", is_error: true } },
        DONE,
      ],
    ],
    ends: { output: "Done." },
    starts: 1,
    paid: 1,
    booked: ["completed"],
    logged: ["from the future"],
  },
  {
    what: "a line of 50 MB",
    turns: [[{ line: "x", repeat: 50_000_000 }, DONE]],
    ends: { output: "Done." },
    starts: 1,
    paid: 1,
    booked: ["completed"],
    bytes: 50_000_000,
  },
];

const slug = (what: string, program: Program): string =>
  `${program}-${what.toLowerCase().replaceAll(/[^a-z0-9]+/g, "-")}`.slice(0, 32).replace(/-$/, "");

const ALL = CASES.flatMap((one) =>
  (one.kinds ?? PROGRAMS).map((program) => ({
    ...one,
    ...(program === "claude" ? one.claude : {}),
    by: program,
    id: slug(one.what, program),
  })),
);

const AGENT: Readonly<Record<Program, Pick<FakeAgent, "kind" | "settings">>> = {
  claude: { kind: "claude" },
  codex: { kind: "codex" },
  server: { kind: "codex", settings: { mode: "app-server" } },
};

let bench: Bench;
const atEnd = endOfFile();

beforeAll(async () => {
  const agents = ALL.map(({ id, by, turns }): FakeAgent => ({ name: id, turns, ...AGENT[by] }));
  bench = newBench(agents, { onEnd: atEnd, programs: programsOf() });
  const { pool } = bench;
  await pool.start();
  for (const { id, maxAttempts, files } of ALL)
    pool.drop(id, {
      agent: id,
      group: "nights",
      prompt: `the work of ${id}`,
      ...(maxAttempts === undefined ? {} : { max_attempts: maxAttempts }),
      ...(files === undefined ? {} : { expect_files: files }),
    });
});

function programsOf(): Record<string, string> {
  return Object.fromEntries(
    ALL.flatMap(({ id, program }) => (program === undefined ? [] : [[id, program]])),
  );
}

describe.each(PROGRAMS)("%s", (program) => {
  it.each(ALL.filter(({ by }) => by === program))("$what", async (one) => {
    const { id, ends, attempts = 1 } = one;
    const { pool } = bench;
    const isGood = "output" in ends;
    const record = isGood ? await pool.result(id, 60_000) : await pool.error(id, 60_000);
    if ("output" in ends) expect(record).toMatchObject({ output: ends.output, attempts });
    else {
      const { kind: failure, code, error = /./ } = ends;
      expect(record).toMatchObject({
        kind: failure,
        code,
        attempts,
        error: expect.stringMatching(error),
      });
    }
    expect(record["denied"]).toEqual(one.denied);
    if (one.isAnew === true) expectAnew(id, one.starts);
    else expectStarts(id, one.starts);
    const costs = bench.costs(id);
    expect(costs.map(({ outcome }) => outcome)).toEqual(one.booked);
    expect(costs.filter(({ group }) => group !== "nights")).toEqual([]);
    const tokens = costs.reduce((sum, { input_tokens: input }) => sum + input, 0);
    expect(tokens).toBe(1000 * one.paid);
    expectLogs(id, String(record.run), one);
    if (isGood) expect(bench.session(id)).toBeUndefined();
  });
});

it("tells a person once for each agent and reason what to do", () => {
  const told = bench.pool.alerts().filter(({ alert }) => String(alert).startsWith("agent_"));
  const wanted = ALL.filter(
    // What the checks find says nothing about the agent.
    ({ ends, files }) =>
      files === undefined && "kind" in ends && ["auth", "config", "permission"].includes(ends.kind),
  ).map(({ id, ends }) => {
    // No other run of the agent can do better: it is paused.
    const alert =
      "kind" in ends && ends.kind === "permission" ? "agent_permission" : "agent_paused";
    return { id, alert };
  });
  expect(told.map(({ alert }) => String(alert)).toSorted()).toEqual(
    wanted.map(({ alert }) => alert).toSorted(),
  );
  for (const { id, alert } of wanted)
    expect(told).toContainEqual(
      expect.objectContaining({
        alert,
        message: expect.stringMatching(
          new RegExp(`^agent ${id}(?:: | is paused ).*mailchute retry ${id}`),
        ),
      }),
    );
  const refused = told.find(({ message }) => String(message).includes("is not let in"));
  expect(refused?.["message"]).toContain("log in again");
});

/** The second start began a new session, which was told the task and why. */
function expectAnew(id: string, count: number): void {
  expect(bench.resumed(id)).toEqual(Array.from({ length: count }, () => undefined));
  const message = bench.messages(id).at(-1);
  expect(message).toContain(`the work of ${id}`);
  expect(message).toContain("too long for the model");
}

/** It resumed the session of the first start, and was told its task once. */
function expectStarts(id: string, count: number): void {
  expect(bench.starts(id)).toHaveLength(count);
  const sessions = bench.resumed(id);
  expect(sessions[0]).toBeUndefined();
  expect(new Set(sessions.slice(1)).size).toBeLessThanOrEqual(1);
  expect(sessions.slice(1)).not.toContain(undefined);
  const messages = bench.messages(id);
  if (count > 0) expect(messages[0]).toContain(`the work of ${id}`);
  for (const message of messages.slice(1)) {
    expect(message).toContain("did not come to its end");
    expect(message).toContain("What is known of the last run");
    expect(message).not.toContain(`the work of ${id}`);
  }
}

function expectLogs(id: string, run: string, { logged = [], bytes = 0, starts }: Case): void {
  const events = fs.readFileSync(join(bench.pool.state, "runs", run, "events.jsonl"));
  expect(events.length).toBeGreaterThanOrEqual(bytes);
  const log = bench.log(id);
  const types = log.map(({ event_type: type }) => type);
  for (const type of logged) expect(types).toContain(type);
  if (starts > 0) expect(types).toContain("session_started");
  for (const record of log) expect(record).toMatchObject({ agent_name: id, task_id: id });
}
