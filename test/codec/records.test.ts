/** Result and error records: the task travels inside, digit for digit, and a torn record is none. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { decodeRecord, encodeRecord } from "../../src/codec/records.ts";
import { decodeTask } from "../../src/codec/task-codec.ts";
import type { ErrorRecord, ResultRecord } from "../../src/core/task.ts";

const RESULT: ResultRecord = {
  task_id: "a",
  status: "completed",
  verdict: "pass",
  verdict_reason: "",
  output: { text: "é\n", list: [1, null] },
  duration_ms: 12,
  completed_at: 1767225600,
  attempts: 1,
  agent_id: "coder",
  lease: "s.1.x",
  exit_code: 0,
  run: null,
};

const FAILURE: ErrorRecord = {
  task_id: "a",
  status: "failed",
  error: "it broke",
  attempts: 3,
  last_attempt_at: 1,
  failed_at: 2,
  code: "ErrExit",
  kind: "exit",
  agent_id: "coder",
  lease: "s.3.x",
  exit_code: 1,
  signal: null,
  run: "a@s.3.x",
};

describe("a record", () => {
  it("counts as saying nothing where another program has written something wrong", () => {
    for (const wrong of [null, 7, [], {}, true]) {
      const foreign = {
        ...FAILURE,
        lease: wrong,
        agent_id: wrong,
        error: wrong,
        attempts: "1",
        run: wrong,
        batch: "x",
      };
      const { record } = decodeRecord(Buffer.from(JSON.stringify(foreign))) ?? {};
      const said = { lease: "", agent_id: "", error: "", attempts: 0, run: null };
      expect(record).toMatchObject(said);
      expect(record?.batch).toBeUndefined();
    }
    const least = decodeRecord(Buffer.from('{"task_id":"a","status":"completed"}'));
    expect(least?.record).toEqual({ task_id: "a", status: "completed", lease: "", attempts: 0 });
  });

  it("is one line of JSON that any program can read, with the task inside", () => {
    for (const record of [RESULT, FAILURE]) {
      const bytes = encodeRecord(record, '{"prompt":"x"}');
      expect(bytes.toString().endsWith("}\n")).toBe(true);
      expect(bytes.toString().trimEnd()).not.toContain("\n");
      expect(JSON.parse(bytes.toString())).toEqual({ ...record, task: { prompt: "x" } });
    }
  });

  it("is read back as what was written, with the very text of the task", () => {
    const taskText = '{"payload" : {"n":12345678901234567890, "__proto__":{"x":1}},\n "x":1.10}';
    const decoded = decodeRecord(encodeRecord(RESULT, taskText));
    expect(decoded?.taskText).toBe(taskText);
    expect(decoded?.record).toMatchObject(RESULT);
    expect(decodeTask(Buffer.from(decoded?.taskText ?? ""), "a").text).toBe(taskText);
  });

  it("is read back whatever the output is", () => {
    fc.assert(
      fc.property(fc.jsonValue({ stringUnit: "binary", maxDepth: 8 }), (output) => {
        const record = { ...RESULT, output: JSON.parse(JSON.stringify(output)) as unknown };
        expect(decodeRecord(encodeRecord(record, undefined))).toEqual({
          record,
          taskText: undefined,
        });
      }),
    );
  });

  it("gives back a task that nests as deep as is allowed: retry needs it", () => {
    const text = `{"payload":${"[".repeat(63)}${"]".repeat(63)}}`;
    expect(decodeTask(Buffer.from(text), "a").text).toBe(text);
    expect(decodeRecord(encodeRecord(RESULT, text))?.taskText).toBe(text);
  });

  it("may have no task, when there never was one", () => {
    const bytes = encodeRecord(FAILURE, undefined);
    expect(JSON.parse(bytes.toString())).toEqual(FAILURE);
    expect(decodeRecord(bytes)).toEqual({ record: FAILURE, taskText: undefined });
  });

  it("that is torn at any byte is none", () => {
    const bytes = encodeRecord(RESULT, '{"prompt":"é"}');
    // Without its last newline it is whole.
    for (let length = 0; length < bytes.length - 1; length++)
      expect(decodeRecord(bytes.subarray(0, length))).toBeUndefined();
    expect(decodeRecord(bytes.subarray(0, -1))).toBeDefined();
  });

  it("of somebody else is none", () => {
    for (const text of [
      "{}",
      "[]",
      "null",
      '{"task_id":1}',
      '{"task":{}}',
      "",
      "\0\0",
      '{"task_id":"a","task_id":"b"}',
      "\xff",
    ]) {
      expect(decodeRecord(Buffer.from(text, "latin1"))).toBeUndefined();
    }
  });
});
