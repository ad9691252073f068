/** Messages of other machines: what fits comes through unchanged, and all else is refused with a reason. */
import { describe, expect, test } from "vitest";
import { ID_CHARS_MAX } from "../../../src/core/limits.ts";
import { isId, parseName } from "../../../src/core/names.ts";
import { dispatchId, readHeld } from "../../../src/parts/cluster/protocol/dispatch.ts";
import {
  BadMessage,
  decodeBeat,
  decodeJob,
  decodeResult,
  encodeMessage,
} from "../../../src/parts/cluster/protocol/message-codec.ts";
import {
  type Job,
  MESSAGE_BYTES_MAX,
  type Result,
} from "../../../src/parts/cluster/protocol/messages.ts";
import { seededRandom } from "../../support/seeded-random.ts";

const dispatch = {
  tree: "laptop.abcd2345",
  task: "T-1.b",
  submission: "k3x9q2m7261126",
  attempt: 2,
};
const SENDER = { target: "gpu", machine: "hall-2" };
const ID = "laptop.abcd2345.T-1.b.k3x9q2m7261126.2";
const job: Job = { dispatch, target: "gpu", task: { agent: "coder", payload: { a: [1, null] } } };
const result: Result = {
  dispatch,
  target: "gpu",
  machine: "hall-2",
  end: { status: "completed", output: { n: 1 }, verdict: "pass", verdict_reason: "", exit_code: 0 },
};

const bytesOf = (value: unknown): Buffer => Buffer.from(JSON.stringify(value));
const wire = (message: object): Record<string, unknown> =>
  JSON.parse(String(encodeMessage(message as Job)));

describe("a dispatch", () => {
  test("has one id for each run of each submission, also when the names are as long as can be", () => {
    expect(dispatchId(dispatch)).toBe(ID);
    const long = { ...dispatch, task: "x".repeat(ID_CHARS_MAX) };
    const ids = [
      long,
      { ...long, task: `${"x".repeat(ID_CHARS_MAX - 1)}y` },
      { ...long, attempt: 3 },
      { ...long, submission: "k3x9q2m8261126" },
      { ...long, tree: "laptop.abcd2346" },
    ].map(dispatchId);
    expect(new Set(ids).size).toBe(5);
    for (const id of ids) expect(isId(id), id).toBe(true);
  });

  test("is read from the name of a held task, and from no other one", () => {
    const held = (file: string) =>
      readHeld("laptop.abcd2345", parseName(file) ?? expect.fail(file));
    expect(held("T-1.b@k3x9q2m7261126.2~hold-cluster-gpu.json")).toEqual({
      dispatch,
      target: "gpu",
    });
    for (const file of [
      "a@b.1~ready.json",
      "a@b.1~w-cluster-gpu.json",
      "a@b.1~hold-quota-default.json",
      "a@b.1~hold-cluster-.json",
      "a@b.1~hold-cluster-GPU.json",
      "a@b.1~hold-cluster-gpu.ndjson",
    ])
      expect(held(file), file).toBeUndefined();
  });
});

describe("what fits", () => {
  test("comes through unchanged", () => {
    expect(decodeJob(encodeMessage(job), ID)).toEqual(job);
    expect(decodeResult(encodeMessage(result), ID, SENDER)).toEqual(result);
    const beat = { machine: "hall-2", has: [{ dispatch, target: "gpu" }] };
    expect(decodeBeat(encodeMessage(beat), "laptop.abcd2345", "hall-2")).toEqual(beat);
  });

  test("may hold an output as deep as a record can, and members of later versions beside", () => {
    let output: unknown = 1;
    for (let depth = 0; depth < 500; depth++) output = [output];
    const deep = { ...result, end: { ...result.end, output } };
    expect(decodeResult(encodeMessage(deep), ID, SENDER)).toEqual(deep);
    expect(decodeJob(bytesOf({ ...wire(job), hint: 1 }), ID)).toMatchObject(job);
  });
});

describe("what does not fit is refused with the reason", () => {
  const head = wire(job);
  test.each<[string, unknown, RegExp]>([
    ["no object", [], /object/],
    ["no version", { ...head, version: undefined }, /version/],
    ["a later version", { ...head, version: 2 }, /it has version 2, and this program knows 1/],
    ["no dispatch", { ...head, dispatch: undefined }, /dispatch/],
    ["no task", { ...head, task: undefined }, /task/],
    ["a task that is a list", { ...head, task: [] }, /task/],
    [
      "another tree",
      { ...head, dispatch: { ...dispatch, tree: "laptop.abcd2346" } },
      /another dispatch/,
    ],
    ["no tree", { ...head, dispatch: { ...dispatch, tree: "../../.." } }, /dispatch.tree/],
    [
      "an id that leaves the tray",
      { ...head, dispatch: { ...dispatch, task: "../x" } },
      /dispatch.task/,
    ],
    ["an id with a line end", { ...head, dispatch: { ...dispatch, task: "a\n" } }, /dispatch.task/],
    ["run 0", { ...head, dispatch: { ...dispatch, attempt: 0 } }, /attempt/],
    ["half a run", { ...head, dispatch: { ...dispatch, attempt: 1.5 } }, /attempt/],
    ["another run", { ...head, dispatch: { ...dispatch, attempt: 3 } }, /another dispatch/],
    [
      "a submission with a slash",
      { ...head, dispatch: { ...dispatch, submission: "a/b" } },
      /submission/,
    ],
    ["a target that is a wildcard", { ...head, target: ">" }, /target/],
    ["a target with a dot", { ...head, target: "a.b" }, /target/],
  ])("job with %s", (_, message, why) => {
    expect(() => decodeJob(bytesOf(message), ID)).toThrow(BadMessage);
    expect(() => decodeJob(bytesOf(message), ID)).toThrow(why);
  });

  test.each<[string, unknown, RegExp]>([
    ["another machine", { machine: "hall-3" }, /another machine/],
    ["another target", { target: "cpu" }, /another target/],
    ["no end", { end: null }, /end/],
    ["an end of no kind", { end: { status: "done" } }, /end/],
    ["a failure of no kind", { end: { status: "failed", kind: "bad luck" } }, /end/],
    ["a failure without its facts", { end: { status: "failed", kind: "exit" } }, /end/],
  ])("result with %s", (_, members, why) => {
    const message = bytesOf({ ...wire(result), ...(members as object) });
    expect(() => decodeResult(message, ID, SENDER)).toThrow(BadMessage);
    expect(() => decodeResult(message, ID, SENDER)).toThrow(why);
  });

  test("heartbeat about another tree, or with too much in it", () => {
    const beat = { machine: "hall-2", has: [{ dispatch, target: "gpu" }] };
    expect(() => decodeBeat(encodeMessage(beat), "laptop.abcd2346", "hall-2")).toThrow(
      /another tree/,
    );
    const many = { ...beat, has: Array.from({ length: 1001 }, () => beat.has[0]) };
    expect(() => decodeBeat(encodeMessage(beat), "laptop.abcd2345", "hall-3")).toThrow(
      /another machine/,
    );
    expect(() => decodeBeat(bytesOf(wire(many)), "laptop.abcd2345", "hall-2")).toThrow(/has/);
    expect(() =>
      decodeBeat(bytesOf({ ...wire(beat), machine: "a b" }), "laptop.abcd2345", "a b"),
    ).toThrow(/machine/);
  });

  test("too large a message, with its size", () => {
    const large = { ...job, task: { prompt: "x".repeat(MESSAGE_BYTES_MAX) } };
    expect(() => encodeMessage(large)).toThrow(
      /it has 900\d+ bytes, and at most 900000 can travel/,
    );
    expect(() => decodeJob(bytesOf(wire({ ...job, x: 1 })).fill(32, 0, 0), ID)).not.toThrow();
    expect(() => decodeJob(Buffer.alloc(MESSAGE_BYTES_MAX + 1), ID)).toThrow(/at most 900000/);
  });

  test("any change of any byte, without another error", () => {
    const chance = seededRandom(Number(process.env["MAILCHUTE_WALKS_SEED"] ?? 1));
    const messages = [encodeMessage(job), encodeMessage(result)];
    for (let turn = 0; turn < 3000; turn++) {
      const bytes = Buffer.from(chance.pick(messages));
      for (let count = chance.below(4); count >= 0; count--)
        bytes[chance.below(bytes.length)] = chance.below(256);
      const cut = bytes.subarray(0, chance.below(8) === 0 ? chance.below(bytes.length) : undefined);
      for (const decode of [
        () => decodeJob(cut, ID),
        () => decodeResult(cut, ID, SENDER),
        () => decodeBeat(cut, "laptop.abcd2345", "hall-2"),
      ])
        try {
          decode();
        } catch (error) {
          expect(error, String(cut)).toBeInstanceOf(BadMessage);
        }
    }
  });
});
