/**
 * Each real program through a pool in fourteen situations: the outcome is right, and no process is left. A word for each of them stands in
 * a table of the documents, which `npm run test:agents -- --real` writes.
 */
import fs from "node:fs";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import type { Step } from "../../../src/agents/mock-api/script.ts";
import type { MockRequest } from "../../../src/agents/mock-api/server.ts";
import { waitFor } from "../../support/wait-for.ts";
import { replaceRows } from "./docs-table.ts";
import { IS_WHOLE, PROGRAM_NAMES, type ProgramName, versionOf } from "./install.ts";
import { DONE, newProgramBench, PROGRAMS, type ProgramBench } from "./programs.ts";
import { isAlive, LONG_TOOL } from "./start.ts";

/** Programs start slowly on a machine that has other work. */
const SLOW_MS = 240_000;
const TEST_MS = 1_800_000;
const ROUNDS = IS_WHOLE ? 20 : 2;
const SERIES = `${ROUNDS} of ${ROUNDS}`;
/** So many tasks of a series run at once. */
const SLOTS = 2;
/** A program that starts is silent, too. */
const IDLE_MS = 60_000;

const MAKES = { run: "echo made > made.txt" };
/** Leaves a server behind in a session of its own. */
const LEAVES_SERVER =
  "setsid sh -c 'echo $$ > server.new; mv server.new server; exec sleep 300' > /dev/null 2>&1 &";
const NEXT_HOUR = { status: 429, headers: { "retry-after": "3600" } };

interface Settled {
  how: "completed" | "failed" | "waits";
  attempts: number;
  code: string;
  text: string;
}

/** How a task has ended, or where it waits. */
async function endOf({ pool }: ProgramBench, id: string): Promise<Settled> {
  return await waitFor(
    () => {
      const held = fs
        .readdirSync(pool.processing)
        .find((name) => name.startsWith(`${id}@`) && name.includes("~hold-"));
      if (held !== undefined) {
        // The journal is written a moment later.
        const line = pool.events().findLast(({ event }) => event === "held");
        if (line === undefined) return undefined;
        const { error } = line;
        const attempts = Number(/\.(\d+)~hold/.exec(held)?.[1]);
        return { how: "waits", attempts, code: "", text: String(error) };
      }
      const result = pool.results().find((one) => one.task_id === id);
      if (result !== undefined) {
        const { attempts, output } = result;
        return { how: "completed", attempts, code: "", text: String(output) };
      }
      const failed = pool.errors().find((one) => one.task_id === id);
      if (failed === undefined) return undefined;
      const { attempts, code, error } = failed;
      return { how: "failed", attempts, code, text: error };
    },
    { what: `the end of ${id}`, timeoutMs: SLOW_MS },
  );
}

/** What is read of the end when it is none of those that a situation knows. */
const oddly = ({ how, attempts, code, text }: Settled): string =>
  `${how} after ${attempts}: ${code} ${text.slice(0, 500)}`;

async function pidIn(dir: string, file: string): Promise<number> {
  const path = join(dir, file);
  await waitFor(() => fs.existsSync(path), { what: path, timeoutMs: SLOW_MS });
  return Number(fs.readFileSync(path, "utf8"));
}

const CALL = /\[(?:tool_use|function_call|call) /;

/** Where the run after the first one has gone on, by what it has asked: it begins with such words. */
function sessionAfter({ api }: ProgramBench, words: RegExp): string {
  const isNext = ({ messages }: MockRequest): boolean => messages.some((one) => words.test(one));
  const first = api.requests.find((request) => request.tools.length > 1 && isNext(request));
  if (first === undefined) return "it was not told why it runs again";
  return first.messages.some((one) => CALL.test(one)) ? "same session" : "new session";
}

interface Situation {
  settings?: Record<string, unknown>;
  /** What the model answers first. */
  step: Step;
  /** @returns the word for how it ended */
  play: (bench: ProgramBench) => Promise<string>;
  /** The word; or by program, with the one of all others as `all`. Several where that depends on the moment. */
  word: string | Partial<Record<ProgramName | "all", string | readonly string[]>>;
}

/** Gemini CLI overwrites a session that it loads in the minute in which it has begun. */
const SESSION = { all: "same session", gemini: ["same session", "new session"] } as const;

/** The program or its worker is killed in the middle of a tool, and the next run does the work. */
async function killed(bench: ProgramBench, kill: (bench: ProgramBench) => void): Promise<string> {
  const tool = await pidIn(bench.drop("t"), "pid");
  bench.play(MAKES);
  kill(bench);
  const end = await endOf(bench, "t");
  if (end.how !== "completed" || end.attempts !== 2 || isAlive(tool)) return oddly(end);
  return sessionAfter(bench, /did not come to its end|An earlier session worked on this task/);
}

/** Many tasks, some at once. @returns how many of them were right */
async function series(
  bench: ProgramBench,
  one: (id: string, dir: string) => Promise<string | undefined>,
): Promise<string> {
  const ids = Array.from({ length: ROUNDS }, (_, n) => `t${n}`);
  const wrong: string[] = [];
  const lane = async (): Promise<void> => {
    for (let id = ids.shift(); id !== undefined; id = ids.shift()) {
      const why = await one(id, bench.drop(id));
      if (why !== undefined) wrong.push(`${id}: ${why}`);
    }
  };
  await Promise.all(Array.from({ length: SLOTS }, lane));
  return [`${ROUNDS - wrong.length} of ${ROUNDS}`, ...wrong].join("; ");
}

const SITUATIONS: Readonly<Record<string, Situation>> = {
  "does its work": {
    step: MAKES,
    play: async (bench) => {
      bench.drop("t");
      const end = await endOf(bench, "t");
      const isRight = end.how === "completed" && end.attempts === 1 && end.text.trim() === DONE;
      return isRight ? "completed" : oddly(end);
    },
    word: "completed",
  },
  "does its work behind walls": {
    settings: { sandbox: {} },
    step: { run: `${MAKES.run}; echo out > ../out` },
    play: async (bench) => {
      const dir = bench.drop("t");
      const end = await endOf(bench, "t");
      if (fs.existsSync(join(dir, "..", "out"))) return `it is out: ${oddly(end)}`;
      return end.how === "completed" && end.attempts === 1 ? "completed" : oddly(end);
    },
    word: "completed",
  },
  "has a red check": {
    step: { run: "echo one > made.txt" },
    play: async (bench) => {
      bench.drop("t", { verify: ["grep", "two", "made.txt"] });
      const isRed = (): boolean =>
        bench.pool.events().some(({ error }) => String(error).includes("verify"));
      await waitFor(isRed, { what: "the red check", timeoutMs: SLOW_MS });
      bench.play({ run: "echo two > made.txt" });
      const end = await endOf(bench, "t");
      if (end.how !== "completed" || end.attempts !== 2) return oddly(end);
      return sessionAfter(bench, /the check failed/);
    },
    word: SESSION,
  },
  "has its request refused": {
    step: { status: 400 },
    play: async (bench) => {
      bench.drop("t");
      const end = await endOf(bench, "t");
      const isRefused = end.code === "ErrAgentRequest" && end.attempts === 1;
      if (isRefused) return "fails at once";
      const isTried = end.code === "ErrAgentFailed" && end.attempts === 3;
      return isTried ? "fails after three attempts" : oddly(end);
    },
    word: {
      all: "fails at once",
      opencode: "fails after three attempts",
      cline: "fails after three attempts",
    },
  },
  "is cancelled in a tool": {
    step: { run: `${LEAVES_SERVER} ${LONG_TOOL}` },
    play: (bench) =>
      series(bench, async (id, dir) => {
        const pids = [await pidIn(dir, "pid"), await pidIn(dir, "server")];
        await bench.pool.run(["cancel", id]);
        const end = await endOf(bench, id);
        if (end.code !== "ErrCancelled") return oddly(end);
        return pids.some(isAlive) ? "a process is left" : undefined;
      }),
    word: SERIES,
  },
  "is killed": {
    step: { run: `true; ${LONG_TOOL}` },
    play: (bench) =>
      killed(bench, ({ programs }) => {
        for (const pid of programs()) process.kill(pid, "SIGKILL");
      }),
    word: SESSION,
  },
  "loses its worker": {
    step: { run: `true; ${LONG_TOOL}` },
    play: (bench) =>
      killed(bench, ({ pool }) => {
        for (const { pid } of pool.workers()) process.kill(pid, "SIGKILL");
      }),
    word: SESSION,
  },
  "may not write": {
    settings: { permissions: { mode: "read" } },
    step: MAKES,
    play: async (bench) => {
      const dir = bench.drop("t", { max_attempts: 1 });
      const end = await endOf(bench, "t");
      if (fs.existsSync(join(dir, "made.txt"))) return `it has written: ${oddly(end)}`;
      if (end.code === "ErrPermission") return "denied";
      return end.code === "ErrVerify" ? "in its sandbox" : oddly(end);
    },
    word: { all: "denied", codex: "in its sandbox" },
  },
  "is at its quota": {
    settings: { meter: true },
    step: NEXT_HOUR,
    play: async (bench) => {
      bench.drop("t");
      const beganMs = Date.now();
      const end = await endOf(bench, "t");
      const until = Date.parse(/no run before (\S+Z)/.exec(end.text)?.[1] ?? "");
      if (end.how !== "waits" || end.attempts !== 1) return oddly(end);
      return until - beganMs > 3500_000 ? "waits the hour" : "waits, and asks again";
    },
    word: { all: "waits the hour", cline: "waits, and asks again" },
  },
  "is at its quota, without a meter": {
    settings: { idle_ms: IDLE_MS },
    step: NEXT_HOUR,
    play: async (bench) => {
      bench.drop("t");
      const end = await endOf(bench, "t");
      if (end.how !== "waits" || end.attempts !== 1) return oddly(end);
      return end.text.includes("silent") ? "waits, for its silence" : "waits, as it says so";
    },
    word: {
      all: "waits, for its silence",
      claude: "waits, as it says so",
      copilot: "waits, as it says so",
    },
  },
  "has a wrong key": {
    step: { status: 401 },
    play: async (bench) => {
      bench.drop("t");
      const end = await endOf(bench, "t");
      return end.code === "ErrAuth" && end.attempts === 1 ? "`auth`" : oddly(end);
    },
    word: "`auth`",
  },
  "gets no answer": {
    settings: { idle_ms: IDLE_MS },
    step: { hang: true },
    play: async (bench) => {
      bench.drop("t", { max_attempts: 1 });
      const end = await endOf(bench, "t");
      if (end.code === "ErrIdle") return "`timeout`";
      return end.how === "waits" && end.text.includes("it was silent") ? "as a quota" : oddly(end);
    },
    word: { all: "as a quota", claude: "`timeout`", codex: "`timeout`" },
  },
  "gets half an answer": {
    step: { ...MAKES, cut: true },
    play: async (bench) => {
      bench.drop("t");
      const isAsked = (): boolean => bench.api.requests.some(({ tools }) => tools.length > 1);
      await waitFor(isAsked, { what: "the request", timeoutMs: SLOW_MS });
      bench.play(MAKES);
      const end = await endOf(bench, "t");
      if (end.how !== "completed") return oddly(end);
      if (end.attempts > 1) return "next attempt";
      const runs = bench.pool.events().filter(({ event }) => event === "started").length;
      return runs === 1 ? "asks again" : "next run, without an attempt";
    },
    word: {
      all: "asks again",
      gemini: "next run, without an attempt",
      cline: ["asks again", "next run, without an attempt"],
    },
  },
  "leaves a process behind": {
    // A run that ends at once would end the server before it has written.
    step: { run: `${LEAVES_SERVER} while [ ! -e server ]; do sleep 0.1; done; ${MAKES.run}` },
    play: (bench) =>
      series(bench, async (id, dir) => {
        const server = await pidIn(dir, "server");
        const end = await endOf(bench, id);
        if (end.how !== "completed" || end.attempts !== 1) return oddly(end);
        return isAlive(server) ? "the process is left" : undefined;
      }),
    word: SERIES,
  },
};

/** The words of each program, by situation. */
const seen = new Map<ProgramName, Map<string, string>>();

async function wordOf(name: ProgramName, situation: Situation): Promise<string> {
  const { settings = {}, step, play } = situation;
  const ends: (() => void | Promise<void>)[] = [];
  const bench = await newProgramBench(name, settings, (end) => void ends.push(end));
  try {
    bench.play(step);
    const word = await play(bench);
    const left = bench.left().map(argumentsOf);
    return left.length === 0 ? word : `${word}, and these are left: ${left.join("; ")}`;
  } finally {
    for (const end of ends.reverse()) await end();
  }
}

const argumentsOf = (pid: number): string =>
  fs.readFileSync(`/proc/${pid}/cmdline`, "latin1").replaceAll("\0", " ");

describe.each(PROGRAM_NAMES)("%s", (name) => {
  it.concurrent.each(Object.entries(SITUATIONS))(
    "%s",
    async (what, situation) => {
      const { word } = situation;
      const got = await wordOf(name, situation);
      const words = seen.get(name) ?? new Map<string, string>();
      seen.set(name, words.set(what, got));
      const right = typeof word === "string" ? word : (word[name] ?? word.all);
      expect([right].flat()).toContain(got);
    },
    TEST_MS,
  );
});

/** The columns of the table: what is not the same for all programs, and the series. */
const COLUMNS = Object.entries(SITUATIONS).flatMap(([what, { word }]) =>
  word !== SESSION && (typeof word !== "string" || word === SERIES) ? [what] : [],
);

afterAll(() => {
  if (!IS_WHOLE) return;
  const date = new Date().toISOString().slice(0, 10);
  const whole = [...seen].filter(([, words]) => words.size === Object.keys(SITUATIONS).length);
  const rows = whole.map(([name, words]): [string, string[]] => {
    const tried = `${versionOf(name)}, ${date}`;
    return [PROGRAMS[name].title, [tried, ...COLUMNS.map((what) => words.get(what) ?? "")]];
  });
  const titles = Object.values(PROGRAMS).map(({ title }) => title);
  replaceRows(["program", "version, tried on", ...COLUMNS], new Map(rows), titles);
});
