/** What a run says when it ends: kind about form, strict about what would change the plan. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { decodeEnvelope } from "../../src/codec/envelope.ts";
import { type Envelope, mergeEnvelopes, newEnvelope } from "../../src/core/envelope.ts";

function good(value: unknown): Envelope {
  const decoded = decodeEnvelope(value);
  expect(decoded.problems).toBeUndefined();
  return decoded.envelope as Envelope;
}

describe("an envelope", () => {
  it("needs a status and nothing else", () => {
    expect(good({ status: "success" })).toEqual(newEnvelope("success", ""));
    expect(good({ status: " Fail\n", summary: "boom" })).toEqual(newEnvelope("fail", "boom"));
    expect(decodeEnvelope({}, { missingStatus: "success" }).envelope?.status).toBe("success");
  });

  it("is taken in the forms that programs and models write", () => {
    expect(
      good({
        status: "success",
        summary: 7,
        files_changed: "a.ts",
        commandsRun: [["npm", "test"], { command: "make", exitCode: 0 }, "ls"],
        errors: [{ message: "late" }, null, { code: 5 }],
        confidence: "85%",
        outputs: { "ctx.port": 8080 },
        note: "kept",
        next: null,
      }),
    ).toEqual({
      ...newEnvelope("success", "7"),
      filesChanged: ["a.ts"],
      commandsRun: ["npm test", "make", "ls"],
      errors: ["late", '{"code":5}'],
      confidence: 0.85,
      outputs: { "ctx.port": 8080 },
      extra: { note: "kept" },
    });
  });

  it("adds nodes and sets statuses, in the words of the plan", () => {
    const { next } = good({
      status: "success",
      next: {
        addNodes: [
          {
            id: "T-2",
            title: "second",
            status: "Pending",
            parent_id: "plan-1",
            depends_on: ["T-1", { node: "plan-1", required_status: "terminal" }],
            retry_policy: { max_attempts: 2 },
            inputs: ["T-1:out.summary", { nodeId: "__run__", key: "ctx.foo", as: "foo" }],
            acceptance: "it works",
            verify: "npm test",
            exec: ["make", ""],
            priority: "HIGH",
            payload: { any: 1 },
          },
        ],
        set_status: [{ node: "T-9", status: "pending" }],
      },
    });
    expect(next).toEqual({
      addNodes: [
        {
          id: "T-2",
          type: "task",
          title: "second",
          status: "open",
          parent: "plan-1",
          priority: "high",
          dependencies: [
            { id: "T-1", required: "done" },
            { id: "plan-1", required: "terminal" },
          ],
          max_attempts: 2,
          inputs: [
            { nodeId: "T-1", key: "out.summary" },
            { nodeId: "__run__", key: "ctx.foo", as: "foo" },
          ],
          acceptance: ["it works"],
          verify: [["sh", "-c", "npm test"]],
          exec: ["make", ""],
          capabilities: [],
          payload: { any: 1 },
        },
      ],
      setStatus: [{ id: "T-9", status: "open" }],
    });
  });

  it("asks a question when it is a checkpoint, with a safe default for a time limit", () => {
    expect(good({ status: "checkpoint", summary: "which?" }).checkpoint).toEqual({
      question: "which?",
      context: "",
      options: [],
    });
    expect(
      good({
        status: "checkpoint",
        checkpoint: { question: "q", options: ["a", { label: "b" }], timeout_ms: 5, default: "b" },
      }).checkpoint,
    ).toEqual({ question: "q", context: "", options: ["a", "b"], timeout_ms: 5, default: "b" });
  });

  const bad: [string, unknown, string[]][] = [
    ["no object", [], ["the result is not a JSON object"]],
    ["no status", {}, ["status: expected success, fail or checkpoint, found nothing"]],
    ["a wrong status", { status: "succes" }, ['did you mean "success"?']],
    ["a summary that is no text", { status: "fail", summary: {} }, ["summary: expected a text"]],
    ["a checkpoint without a question", { status: "checkpoint" }, ["checkpoint.question"]],
    [
      "a time limit without a default",
      { status: "checkpoint", summary: "q", checkpoint: { timeout_ms: 5 } },
      ["checkpoint.default: a time limit needs a safe default"],
    ],
    [
      "a default that is no option",
      { status: "checkpoint", checkpoint: { question: "q", options: ["a"], default: "b" } },
      ["is none of the options"],
    ],
    ["a confidence beyond reason", { status: "success", confidence: 101 }, ["confidence"]],
    ["outputs that are a list", { status: "success", outputs: [1] }, ["outputs: expected values"]],
    ["outputs with our keys", { status: "success", outputs: { "out.summary": 1 } }, ["itself"]],
    ["outputs with bad keys", { status: "success", outputs: { "a b": 1 } }, ['the key "a b"']],
    ["an unknown part of next", { status: "success", next: { nodes: [] } }, ['next."nodes"']],
    [
      "bad nodes: each problem with its place",
      {
        status: "success",
        next: {
          addNodes: [
            { id: "../x", type: "job", priority: "urgent" },
            { id: "a", dependencies: ["A", { id: "b", required: "failed" }] },
            { id: "A", verify: [["ok"], []], exec: "ls", inputs: ["nokey"], max_attempts: 0 },
            "text",
          ],
          setStatus: [{ id: "a", status: "finished" }, { status: "done" }],
        },
      },
      [
        "next.addNodes[0].id",
        "next.addNodes[0].type",
        "next.addNodes[0].priority",
        "next.addNodes[1].dependencies[0]: a node cannot wait for itself",
        "next.addNodes[1].dependencies[1]: expected done or terminal",
        'next.addNodes[2].id: "A" is used twice',
        "next.addNodes[2].verify[1]",
        "next.addNodes[2].exec",
        "next.addNodes[2].inputs[0]",
        "next.addNodes[2].max_attempts",
        "next.addNodes[3]: expected an object",
        "next.setStatus[0].status",
        "next.setStatus[1].id",
      ],
    ],
  ];
  it.each(bad)("is refused with %s", (_name, value, expected) => {
    const { problems } = decodeEnvelope(value);
    for (const one of expected) expect(problems?.join("\n")).toContain(one);
  });

  it("never throws, and what it gives is taken again unchanged", () => {
    const field = fc.constantFrom("status", "next", "outputs", "checkpoint", "errors", "summary");
    const value = fc.oneof(
      fc.jsonValue(),
      fc.dictionary(field, fc.oneof(fc.constantFrom("success", "checkpoint"), fc.jsonValue())),
    );
    fc.assert(
      fc.property(value, (one) => {
        const { envelope } = decodeEnvelope(one);
        if (envelope === undefined) return;
        const { extra: _extra, ...known } = envelope;
        expect(decodeEnvelope(JSON.parse(JSON.stringify(known))).envelope).toEqual(
          JSON.parse(JSON.stringify(known)),
        );
      }),
      { numRuns: 2000 },
    );
  });

  it("of several phases is one: the last decides, what they did adds up", () => {
    const phases = [
      {
        status: "success",
        summary: "planned",
        filesChanged: ["a"],
        next: { addNodes: [{ id: "x" }, { id: "y", title: "old" }] },
        outputs: { a: 1, b: 1 },
      },
      {
        status: "success",
        filesChanged: ["a", "b"],
        next: { addNodes: [{ id: "y" }] },
        outputs: { b: 2 },
      },
    ].map(good);
    expect(mergeEnvelopes(phases)).toMatchObject({
      summary: "planned",
      filesChanged: ["a", "b"],
      next: { addNodes: [{ id: "x" }, { id: "y", title: "y" }] },
      outputs: { a: 1, b: 2 },
    });
    expect(mergeEnvelopes([])).toEqual(newEnvelope("success", ""));
  });
});
