/**
 * Mutations of good inputs: whatever becomes of them, they are taken as what they say or refused with our own error, and
 * nothing else happens. `npm run test:fuzz` does many more, from a new seed each time.
 */
import fs from "node:fs";
import { join } from "node:path";
import { Value } from "@sinclair/typebox/value";
import fc from "fast-check";
import { afterAll, describe, expect, it } from "vitest";
import { readResults } from "../../src/agents/report.ts";
import { decodeLine } from "../../src/codec/batch-codec.ts";
import { decodeCommand } from "../../src/codec/command-codec.ts";
import { decodeEnvelope } from "../../src/codec/envelope.ts";
import { mayStillGrow } from "../../src/codec/json.ts";
import { decodeTask, TaskSchema } from "../../src/codec/task-codec.ts";
import { loadSettings } from "../../src/config/load-settings.ts";
import { explainBadSettings } from "../../src/core/bad-settings.ts";
import { COMMAND_NAMES } from "../../src/core/command.ts";
import { MailchuteError } from "../../src/core/errors.ts";
import { parseObject } from "../../src/core/json-object.ts";
import { TASK_BYTES_MAX } from "../../src/core/limits.ts";
import { isId } from "../../src/core/names.ts";
import { type ReadCounts, readJournal } from "../../src/journal/read.ts";
import { JournalTail } from "../../src/journal/tail.ts";
import { LineReader } from "../../src/mailbox/submit/batch-lines.ts";
import { parseRoadmap } from "../../src/parts/plan/read/document.ts";
import { taskOfNode } from "../../src/parts/plan/rules/node-task.ts";
import { tempDir } from "../support/temp-dir.ts";
import { mutated } from "./mutate.ts";

/** Cases of each property: by default what the ordinary test run has time for. */
const RUNS = Number(process.env["MAILCHUTE_FUZZ_RUNS"] ?? 400);
const SEED = Number(
  process.env["MAILCHUTE_FUZZ_SEED"] ??
    (process.env["MAILCHUTE_FUZZ_RUNS"] === undefined ? 1 : Date.now() % 2 ** 31),
);
const TIMEOUT_MS = 120_000 + 50 * RUNS;

let caseCount = 0;
let failureCount = 0;
afterAll(() => {
  process.stdout.write(
    `mutations: ${caseCount} cases, ${failureCount} properties failed (seed ${SEED})\n`,
  );
});

/** Fails with the seed and the smallest case. */
async function hold<T>(
  arbitrary: fc.Arbitrary<T>,
  check: (value: T) => void | Promise<void>,
): Promise<void> {
  const property = fc.asyncProperty(arbitrary, async (value) => {
    caseCount++;
    await check(value);
  });
  try {
    await fc.assert(property, { numRuns: RUNS, seed: SEED });
  } catch (error) {
    failureCount++;
    throw error;
  }
}

/** What the step gives, or its error when it is one of ours with this code. Anything else is thrown on. */
function answerOf<T>(code: string, step: () => T): { value: T } | { error: MailchuteError } {
  try {
    return { value: step() };
  } catch (error) {
    if (!(error instanceof MailchuteError) || error.code !== code) throw error;
    expect(error.message).toMatch(/^[^\p{Cc}\p{Cf}]{1,1000}$/u);
    return { error };
  }
}

const TASKS = [
  '{"exec":["sh","-c","echo $A"],"env":{"A":"b"},"cwd":"/tmp","timeout_ms":1000,"max_attempts":3}',
  '{"id":"t","title":"é 😀","prompt":"x","agent":"coder","capabilities":["a","b"],"priority":-5}',
  '{"payload":{"n":12345678901234567890,"__proto__":[1e999]},"metadata":{"dependencies":["a","b"],"worktree":"w"},"created_at":1}',
  '{\n "exec": ["true"],\n "verify": [["true"], ["test", "-f", "x"]],\n "not_before": 1, "x-note": [[[[{}]]]]\n}\n',
];
const COMMANDS = [
  '{"command":"pause"}',
  '{"command":"set_workers","args":{"workers":3},"expires_at":1795328475}',
  '{"id":"t","command":"cancel","args":{"node":"task-long"},"final":true,"expires_at":"2026-01-01T00:00:00Z"}',
  '{"command":"stop","args":{"drain":true},"created_at":5}',
];
const CONFIGS = [
  "workers: 3\nretry: { max_attempts: 3, backoff_ms: 10 }\nroots: [/srv, work]\n",
  "# ours\nagents:\n  - name: coder\n    kind: codex\n    args: [--fast]\n    default: true\n  - { name: m, kind: module, module: ./x.mjs }\nretention:\n  outbox_days: 7\n",
  "env_allow: &e [HOME, 'A']\nroots: *e\ndurability: process\nmailbox_enabled: true\nuids: [1, 2]\n",
];
const PLANS = [
  'epics:\n  - id: e1\n    title: "one"\n    milestones:\n      - id: m1\n        tasks:\n          - { id: t1, exec: ["true"], payload: { a: [1, 2] } }\n          - id: t2\n            dependencies: [t1]\n            status: open # soon\n',
  "nodes:\n  - id: a\n    title: &t first\n    env: { A: b }\n    verify: [[make, test]]\n  - id: b\n    title: *t\n    parent: c\n    dependencies: [{ id: a, required: terminal }]\n    inputs: [a:out.summary]\n  - { id: c, type: plan, status: done }\n",
];
const STREAMS = [
  'working\n<result>{"status":"success","summary":"ok","filesChanged":["a"],"outputs":{"k":1}}</result>\n',
  '<result>{"status":"fail"}</result> <result>{"status":"checkpoint","checkpoint":{"question":"q","options":["a","b"],"timeout_ms":5,"default":"a"}}</result>',
  '<result>{"status":"success","next":{"addNodes":[{"id":"x","after":["y"],"exec":["a"],"payload":{"p":[1]}},{"id":"y"}],"setStatus":[{"id":"z","status":"done"}]},"confidence":"85%"}</result>',
];
const RECORDS = [
  '{"event":"selected","n":1,"x":"é😀\\u2028"}',
  '{"n":2}',
  '{"a":{"b":[1,2,{"c":null}]}}',
];

describe("a mutation of a good", () => {
  it("task is a task or ErrInvalidTask, and a task is what JSON.parse reads", {
    timeout: TIMEOUT_MS,
  }, async () => {
    await hold(mutated(TASKS), (bytes) => {
      const answer = answerOf("ErrInvalidTask", () => decodeTask(bytes, "t"));
      if ("error" in answer) return;
      const { task, text } = answer.value;
      expect(Value.Check(TaskSchema, task)).toBe(true);
      expect(bytes.toString("utf8")).toContain(text);
      expect({ ...(JSON.parse(text) as object), id: "t", verify: task.verify }).toEqual({
        verify: undefined,
        ...task,
      });
    });
  });

  it("task that is cut short may still grow", { timeout: TIMEOUT_MS }, async () => {
    await hold(fc.tuple(fc.constantFrom(...TASKS), fc.nat()), ([good, at]) => {
      const whole = Buffer.from(good.trim());
      const cut = whole.subarray(0, at % whole.length);
      const answer = answerOf("ErrInvalidTask", () => decodeTask(cut, "t"));
      expect("error" in answer && mayStillGrow(answer.error)).toBe(true);
    });
  });

  it("command is a command or ErrInvalidCommand", { timeout: TIMEOUT_MS }, async () => {
    await hold(mutated(COMMANDS), (bytes) => {
      const answer = answerOf("ErrInvalidCommand", () => decodeCommand(bytes, "t"));
      if ("error" in answer) return;
      const { command, args, id, expiresAtMs } = answer.value;
      expect(COMMAND_NAMES).toContain(command);
      expect(id).toBe("t");
      if (command === "set-workers") expect(Number.isInteger(args.workers)).toBe(true);
      if (command === "cancel" || command === "retry") expect(args.node).toMatch(/^[^/\0]+$/);
      if (expiresAtMs !== undefined) expect(Number.isFinite(expiresAtMs)).toBe(true);
    });
  });

  it("line of a batch is a task or ErrInvalidTask", { timeout: TIMEOUT_MS }, async () => {
    await hold(mutated(TASKS.map((text) => text.replaceAll("\n", ""))), (bytes) => {
      const answer = answerOf("ErrInvalidTask", () => decodeLine(bytes.toString("utf8"), "b", 7));
      if ("error" in answer) return;
      expect(Value.Check(TaskSchema, { ...answer.value, id: "t" })).toBe(true);
      expect(JSON.parse(JSON.stringify(answer.value))).toBeDefined();
    });
  });

  it("batch gives each of its lines once, whole, and says which are no text", {
    timeout: TIMEOUT_MS,
  }, async () => {
    const path = join(tempDir(), "b.ndjson");
    const good = `${TASKS.map((text) => text.replaceAll("\n", "")).join("\n")}\n`;
    await hold(mutated([good, `\ufeff${good}`]), (bytes) => {
      fs.writeFileSync(path, bytes);
      const reader = new LineReader(path);
      // Undefined: no text.
      const lines: (string | undefined)[] = [];
      for (let line = reader.next(); line !== undefined; line = reader.next()) {
        if (line === "later") continue;
        // Empty lines are counted and not given.
        while (lines.length + 1 < line.number) lines.push("");
        expect(line.number).toBe(lines.length + 1);
        expect(line.text !== undefined || line.fault !== "").toBe(true);
        lines.push(line.text);
      }
      const isMarked = bytes.subarray(0, 3).equals(Buffer.from("\ufeff"));
      const body = isMarked ? bytes.subarray(3) : bytes;
      const expected = body.toString("utf8").split("\n");
      if (expected.at(-1) === "") expected.pop();
      for (const [i, whole] of expected.entries()) {
        const line = i < lines.length ? lines[i] : "";
        expect(line === undefined || whole === line).toBe(true);
      }
      expect(lines.slice(expected.length).join("")).toBe("");
      expect(fs.readFileSync(path).equals(bytes)).toBe(true);
    });
  });

  it("config.yaml is complete settings or ErrInvalidConfig, and keeps its bytes", {
    timeout: TIMEOUT_MS,
  }, async () => {
    const stateDir = tempDir();
    const path = join(stateDir, "config.yaml");
    await hold(mutated(CONFIGS), (bytes) => {
      fs.writeFileSync(path, bytes);
      const answer = answerOf("ErrInvalidConfig", () => loadSettings({ stateDir, env: {} }));
      expect(fs.readFileSync(path).equals(bytes)).toBe(true);
      if ("error" in answer) return;
      const { settings } = answer.value;
      expect(explainBadSettings(settings)).toBeUndefined();
      expect(Number.isInteger(settings.workers) && settings.workers >= 0).toBe(true);
      expect(JSON.parse(JSON.stringify(settings))).toEqual(settings);
    });
  });

  it("roadmap.yaml has problems, or nodes that all make good tasks", {
    timeout: TIMEOUT_MS,
  }, async () => {
    await hold(mutated(PLANS), (bytes) => {
      const { nodes, problems } = parseRoadmap(bytes.toString("utf8"));
      for (const { message, line, col } of problems) {
        expect(message).toMatch(/\S/);
        expect(message).toMatch(/^[^\p{Cc}\p{Cf}]+$/u);
        expect(line > 0 && col > 0).toBe(true);
      }
      if (problems.length > 0) return;
      for (const node of nodes) {
        expect(isId(node.id)).toBe(true);
        const task = Buffer.from(JSON.stringify(taskOfNode(node, "coder", 1, [])));
        if (task.length <= TASK_BYTES_MAX) expect(decodeTask(task, node.id).task.id).toBe(node.id);
      }
    });
  });

  it("stream gives envelopes or problems, which can be written down and read again", {
    timeout: TIMEOUT_MS,
  }, async () => {
    const dir = tempDir();
    const [log, resultFile] = [join(dir, "stdout.log"), join(dir, "result.json")];
    await hold(
      fc.tuple(mutated(STREAMS), fc.option(mutated(['{"status":"success"}']))),
      ([bytes, own]) => {
        fs.writeFileSync(log, bytes);
        if (own === null) fs.rmSync(resultFile, { force: true });
        else fs.writeFileSync(resultFile, own);
        for (const result of readResults(resultFile, log, 0)) {
          const { envelope, problems } = decodeEnvelope(result);
          expect((envelope === undefined) !== (problems === undefined)).toBe(true);
          if (envelope === undefined) continue;
          for (const node of envelope.next.addNodes) expect(isId(node.id)).toBe(true);
          const { extra: _extra, ...known } = envelope;
          const text = JSON.stringify(known);
          expect(decodeEnvelope(JSON.parse(text)).envelope).toEqual(JSON.parse(text));
        }
      },
    );
  });

  it("journal gives every good line, in order, and counts the others", {
    timeout: TIMEOUT_MS,
  }, async () => {
    const path = join(tempDir(), "a.jsonl");
    const rubbish = mutated(RECORDS).map((bytes) => bytes.toString("utf8").replaceAll("\n", " "));
    const line = fc.oneof(fc.constantFrom(...RECORDS), rubbish);
    await hold(
      fc.tuple(fc.array(line, { maxLength: 12 }), rubbish, fc.nat({ max: 600 })),
      async ([lines, torn, nulCount]) => {
        const text = `${lines.map((one) => `${one}\n`).join("")}${torn}${"\0".repeat(nulCount)}`;
        fs.writeFileSync(path, text);
        const known = [...lines, torn].map((one) => one.replaceAll("\0", ""));
        const expected = known.map(parseObject).filter((record) => record !== undefined);
        const badCount = known.filter(
          (one) => one.trim() !== "" && parseObject(one) === undefined,
        ).length;
        const counts: ReadCounts = { records: 0, bad: 0 };
        const read: unknown[] = [];
        for await (const record of readJournal(path, counts)) read.push(record);
        expect(read).toEqual(expected);
        expect(counts).toMatchObject({ records: expected.length, bad: badCount });

        // With its last line finished, whoever follows it in small steps gets the same.
        fs.appendFileSync(path, "\n");
        const tail = new JournalTail(path);
        const followed: unknown[] = [];
        const size = Buffer.byteLength(text) + 1;
        while (tail.offset < size) followed.push(...tail.next(16 * 1024));
        tail.close();
        expect(followed).toEqual(expected);
      },
    );
  });
});
