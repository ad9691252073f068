/** Streams as no program should print them: what each run comes to, what is booked, and that the next run is not harmed. */
import fs from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { endOfFile } from "../../support/temp-dir.ts";
import { type Bench, newBench } from "./bench.ts";
import { line, type PrintingKind, TOKENS, USD, WORDS, type Words } from "./stream-words.ts";

interface Odd {
  /** What is printed, in pieces with a pause between two. */
  prints: readonly (string | Buffer)[];
  exitCode?: number;
  /** `output` of the result, or kind and code of the error. */
  ends?: { output: string } | { kind: string; code: string };
  /** Input tokens that are booked. */
  tokens?: number;
  /** Dollars that are booked, of claude. */
  usd?: number;
  /** It is followed by a second run, which prints a good stream. The session that this one resumes; null: it begins a new one. */
  resumes?: string | null;
  /** How many records of each kind the log has. */
  logged?: Readonly<Record<string, number>>;
}

const KINDS: readonly PrintingKind[] = ["claude", "codex"];
const DONE = { output: "Done." };
const INTERRUPTED = { kind: "interrupted", code: "ErrInterrupted" };
const FAILED = { kind: "agent", code: "ErrAgentFailed" };
const NOTHING = { tokens: 0, usd: 0 };

const nested = (depth: number): string => `${"[".repeat(depth)}${"]".repeat(depth)}`;

/** Of either kind, with its own words. */
function oddStreams({ begin, say, end, call, called, compact }: Words): Record<string, Odd> {
  const good = begin() + say("Done.") + end();
  const cut = begin() + say("Half.");
  return {
    "types and members that nobody knows": {
      prints: [
        begin(),
        line({ type: "from.the.future", is_error: true, error: { message: "no" } }),
        line({ type: "system", subtype: "dream", session_id: 7 }),
        line({ type: "item.dreamt", item: { id: "d", type: "dream" } }),
        say("Done."),
        end({ more: { mood: ["fine"] } }),
      ],
    },
    "members of the wrong type": {
      prints: [
        begin(["s"]),
        say({ text: 7 }),
        say(null),
        call(7),
        called({ id: 7 }),
        line({ type: "assistant", message: "text", item: 7 }),
        line({ type: "item.completed", item: [["agent_message"]] }),
        line({ type: "rate_limit_event", rate_limit_info: "rejected" }),
        line({ type: "error", message: { deep: true } }),
        say("Done."),
        end(),
      ],
    },
    "a type that is a list": {
      prints: [begin(), end({ more: { type: ["result"] } })],
      exitCode: 1,
      ends: INTERRUPTED,
      ...NOTHING,
    },
    "its end twice": { prints: [good, end()] },
    "the result of a call before the call": {
      prints: [begin(), called("c"), call("c"), say("Done."), end()],
    },
    "its end before its beginning": { prints: [end(), begin()], ends: INTERRUPTED },
    "a call without an end": { prints: [begin(), call("c"), say("Done."), end()] },
    "counts beyond all numbers": {
      prints: [begin(), say("Done."), end({ tokens: 1e300, usd: 1e300 })],
      ...NOTHING,
    },
    "counts below zero": {
      prints: [begin(), say("Done."), end({ tokens: -5000, usd: -5 })],
      ...NOTHING,
    },
    "parts of a token": { prints: [begin(), say("Done."), end({ tokens: 999.6 })] },
    "NaN as a count": {
      prints: [begin(), say("Done."), end({ tokens: "#" }).replaceAll('"#"', "NaN")],
      ends: INTERRUPTED,
      ...NOTHING,
    },
    "counts that are texts": {
      prints: [begin(), say("Done."), end({ tokens: "1000", usd: "1" })],
      ...NOTHING,
    },
    "no counts": {
      prints: [
        begin(),
        say("Done."),
        end({
          more: {
            usage: undefined,
            modelUsage: undefined,
            model_usage_since_last_result: undefined,
            total_cost_usd: undefined,
          },
        }),
      ],
      ...NOTHING,
    },
    "separators of Unicode in a text": {
      prints: [
        begin(),
        say("a\u2028b\u2029c\u0085d\v\f"),
        end({ more: { result: "a\u2028b\u2029c\u0085d\v\f" } }),
      ],
      ends: { output: "a\u2028b\u2029c\u0085d\v\f" },
    },
    "lines that end as on Windows": { prints: [good.replaceAll("\n", "\r\n")] },
    "NUL bytes between lines and in them": {
      prints: [`\0\0\n${begin()}\0\n{"type":"\0"}\n`, say("Done."), end()],
    },
    "bytes that are no UTF-8": {
      prints: [
        begin(),
        Buffer.from(say("a#b").replace("#", "\xff\xfe"), "latin1"),
        Buffer.from(end({ more: { result: "a#b" } }).replace("#", "\xff\xfe"), "latin1"),
      ],
      ends: { output: "a\ufffd\ufffdb" },
    },
    "half of a pair of surrogates": {
      prints: [begin(), say("Done."), line({ type: "x", a: "\ud83d" }), end()],
    },
    "a line that nests 100,000 levels deep": {
      prints: [
        begin(),
        `{"type":"assistant","item":${nested(100_000)},"message":${nested(100_000)}}\n`,
        say("Done."),
        end(),
      ],
    },
    "its end in pieces, with pauses": {
      prints: [begin() + say("Done."), end().slice(0, 9), end().slice(9, 40), end().slice(40)],
    },
    "no newline at its end": { prints: [good.slice(0, -1)] },
    "half of its last line": { prints: [good.slice(0, -40)], ends: INTERRUPTED, ...NOTHING },
    "two objects on its last line": {
      prints: [cut, end().trim() + end()],
      ends: INTERRUPTED,
      ...NOTHING,
    },
    "values that are no objects": { prints: ['[1]\n7\n"text"\nnull\ntrue\n[{}]\n', good] },
    "nothing but values that are no objects": {
      prints: ['[1]\n7\n"text"\nnull\n'],
      ends: INTERRUPTED,
      ...NOTHING,
    },
    "nothing but white space": { prints: ["\n\n  \r\n\t\n"], ends: INTERRUPTED, ...NOTHING },
    "a mark of the byte order": { prints: [`\ufeff${good}`] },
    "two compactions": {
      prints: [begin(), compact, compact, say("Done."), end()],
      logged: { context_compacted: 2 },
    },
    "20,000 short lines": {
      prints: [begin(), "{}\n\n".repeat(20_000), say("Done."), end()],
      logged: { agent_message: 1 },
    },
    "names that objects have by themselves": {
      prints: [
        begin(),
        call("__proto__"),
        called("constructor"),
        line({ type: "__proto__", subtype: "toString" }),
        say("Done."),
        end({ more: JSON.parse('{"__proto__":{"is_error":true}}') as object }),
      ],
    },
    "a session without a name": { prints: [begin(""), say("Half.")], exitCode: 1, resumes: null },
    "a session whose name is an option": {
      prints: [begin("--version"), say("Half.")],
      exitCode: 1,
      resumes: null,
    },
    "a session whose name has a NUL byte": {
      prints: [begin("a\0b"), say("Half.")],
      exitCode: 1,
      resumes: null,
    },
    "a session whose name is too long": {
      prints: [begin("a".repeat(200_000)), say("Half.")],
      exitCode: 1,
      resumes: null,
    },
  };
}

const OF_CLAUDE: Record<string, Odd> = {
  "an end that does not say whether it is an error": {
    prints: [WORDS.claude.begin(), WORDS.claude.end({ more: { is_error: undefined } })],
    ends: FAILED,
  },
  "an end that calls its error by a text": {
    prints: [WORDS.claude.begin(), WORDS.claude.end({ more: { is_error: "true" } })],
    ends: FAILED,
  },
  "an end whose subtype is an error": {
    prints: [
      WORDS.claude.begin(),
      WORDS.claude.end({ more: { subtype: "error_max_turns", terminal_reason: undefined } }),
    ],
    ends: FAILED,
  },
  "an end, and a list of background tasks that has not changed": {
    prints: [
      WORDS.claude.begin(),
      line({ type: "system", subtype: "background_tasks_changed", tasks: [] }),
      WORDS.claude.end(),
      line({ type: "system", subtype: "background_tasks_changed", tasks: "none" }),
    ],
  },
  "a session that changes in the middle": {
    prints: [WORDS.claude.begin("s-1"), WORDS.claude.begin("s-2"), WORDS.claude.say("Half.")],
    exitCode: 1,
    resumes: "s-2",
  },
};

const OF_CODEX: Record<string, Odd> = {
  "a failure without an error": {
    prints: [WORDS.codex.begin(), line({ type: "turn.failed" })],
    ends: FAILED,
    ...NOTHING,
  },
  "the thread of another agent in the middle": {
    prints: [
      WORDS.codex.begin("t-1"),
      line({ type: "thread.started", thread_id: "t-2" }),
      WORDS.codex.say("Half."),
    ],
    exitCode: 1,
    resumes: "t-1",
  },
};

const ALL = KINDS.flatMap((kind) =>
  Object.entries({ ...oddStreams(WORDS[kind]), ...(kind === "claude" ? OF_CLAUDE : OF_CODEX) }).map(
    ([what, odd], index) => ({ what, odd, kind, id: `${kind}-${index}` }),
  ),
);

/** Notes its arguments. Prints the pieces in its first run, and a good stream in later ones. */
function programOf({ prints, exitCode = 0 }: Odd, id: string): string {
  const pieces = prints.map((_, index) => `cat piece-${index}`);
  return `#!/bin/sh
cd "$(dirname "$0")/odd/${id}" || exit 9
printf '%s\\n' "$*" | cut -c 1-500 >> args
if test -e again; then cat good; exit 0; fi
touch again
${pieces.join("\nsleep 0.05\n")}
exit ${exitCode}
`;
}

let bench: Bench;
const atEnd = endOfFile();

beforeAll(async () => {
  const agents = ALL.map(({ id, kind }) => ({ name: id, kind, turns: [] }));
  const programs = Object.fromEntries(ALL.map(({ id, odd }) => [id, programOf(odd, id)]));
  bench = newBench(agents, { onEnd: atEnd, programs });
  const { pool } = bench;
  for (const { id, kind, odd } of ALL) {
    const folder = join(pool.dir, "odd", id);
    fs.mkdirSync(folder, { recursive: true });
    for (const [index, piece] of odd.prints.entries())
      fs.writeFileSync(join(folder, `piece-${index}`), piece);
    const { begin, say, end } = WORDS[kind];
    fs.writeFileSync(join(folder, "good"), begin("t-1") + say("Done.") + end());
  }
  await pool.start();
  for (const { id, odd } of ALL)
    pool.drop(id, { agent: id, prompt: "go", max_attempts: odd.resumes === undefined ? 1 : 2 });
});

describe.each(KINDS)("%s that prints", (kind) => {
  it.each(ALL.filter((one) => one.kind === kind))("$what", async ({ id, odd }) => {
    const { pool } = bench;
    const { ends = DONE, tokens = TOKENS, usd = USD, resumes, logged = {} } = odd;
    const isGood = "output" in ends;
    const record = isGood ? await pool.result(id, 20_000) : await pool.error(id, 20_000);
    expect(record).toMatchObject({ ...ends, attempts: resumes === undefined ? 1 : 2 });
    const booked = bench.costs(id);
    expect(booked.reduce((sum, one) => sum + one.input_tokens, 0)).toBe(tokens);
    if (kind === "claude")
      expect(booked.reduce((sum, one) => sum + (one.cost_usd_micro ?? 0), 0)).toBe(
        Math.round(usd * 1e6),
      );
    const types = bench.log(id).map(({ event_type: type }) => type);
    for (const [type, count] of Object.entries(logged))
      expect(types.filter((each) => each === type)).toHaveLength(count);
    if (resumes !== undefined) expect(resumedBy(id)).toBe(resumes);
  });
});

/** The session with which the second run was started; the first one began one. */
function resumedBy(id: string): string | null {
  const args = fs.readFileSync(join(bench.pool.dir, "odd", id, "args"), "utf8");
  return /(?:^| )(?:--resume|resume) (\S*)/m.exec(args)?.[1] ?? null;
}

/** What a terminal would take for a command. */
const CONTROL = /[\0-\x08\x0b-\x1f\x7f-\x9f]/;

it.each([
  "members of the wrong type",
  "NUL bytes between lines and in them",
  "bytes that are no UTF-8",
  "separators of Unicode in a text",
  "a session whose name has a NUL byte",
])("can be shown: %s", async (shown) => {
  for (const { id } of ALL.filter(({ what }) => what === shown)) {
    const { code, stdout } = await bench.pool.run(["logs", id]);
    expect([id, code, CONTROL.test(stdout)]).toEqual([id, 0, false]);
    expect(stdout).toContain("== completed");
  }
});

it("leaves sums that can be read, and a pool that works on", async () => {
  const { pool } = bench;
  const { code, stdout } = await pool.run(["cost", "--json"]);
  expect(code).toBe(0);
  const { total } = JSON.parse(stdout) as { total: Record<string, number> };
  const all = ALL.flatMap(({ id }) => bench.costs(id));
  expect(total["input_tokens"]).toBe(all.reduce((sum, one) => sum + one.input_tokens, 0));
  expect(pool.supervisor()).toMatchObject({ status: "running" });
  expect(pool.events().filter(({ event }) => event === "worker_died")).toEqual([]);
});
