/** What a phase came to: the exit and what was said, weighed together. */
import { describe, expect, it } from "vitest";
import { type AttemptOutcome, outcomeOfExit } from "../../src/core/outcome.ts";
import { PHASES, phasesOf, phaseToRepeat } from "../../src/core/phases.ts";
import { judgePhase } from "../../src/parts/plan/run/judge-phase.ts";

const SILENT = {
  output: "tail",
  verdict: "unknown",
  verdictReason: "",
  status: null,
  message: null,
};
const ended = (code: number): AttemptOutcome => outcomeOfExit(code, SILENT);
const program = (results: Record<string, unknown>[], isRequired = true) =>
  ({ by: "program", results, isRequired }) as const;

describe("a phase", () => {
  it("is what its report says when the program ended well", () => {
    expect(
      judgePhase(ended(0), program([{ status: "success", summary: "s" }])).outcome,
    ).toMatchObject({ kind: "completed", verdict: "success", verdictReason: "s" });
    expect(
      judgePhase(ended(0), program([{ status: "success", verdict: "pass" }])).outcome,
    ).toMatchObject({ verdict: "pass" });
    expect(
      judgePhase(
        outcomeOfExit(0, { ...SILENT, status: "fail" }),
        program([{ status: "fail", errors: ["why"] }]),
      ).outcome,
    ).toMatchObject({ kind: "failed", failure: "reported", message: "why", canRetry: true });
    expect(judgePhase(ended(0), program([{ status: "fail" }])).outcome).toMatchObject({
      failure: "reported",
      message: "it reported a failure and did not say why",
    });
    expect(
      judgePhase(ended(0), program([{ status: "checkpoint", summary: "q" }])).outcome,
    ).toMatchObject({ kind: "completed", verdict: "checkpoint", verdictReason: "q" });
  });

  it("failed when the program did, whatever it reported; the report is kept", () => {
    const { outcome, envelope } = judgePhase(
      ended(3),
      program([{ status: "success", summary: "all good" }]),
    );
    expect(outcome).toMatchObject({ kind: "failed", failure: "exit", exitCode: 3 });
    expect(envelope).toMatchObject({ status: "fail", summary: "all good" });
    expect(judgePhase(ended(64), program([])).outcome).toMatchObject({ canRetry: false });
    expect(judgePhase(ended(75), program([])).outcome).toMatchObject({ kind: "deferred" });
  });

  it("needs a report, or may go without", () => {
    expect(judgePhase(ended(0), program([])).outcome).toMatchObject({ failure: "no_result" });
    expect(judgePhase(ended(0), program([{ summary: "no status" }])).outcome).toMatchObject({
      failure: "invalid_result",
    });
    expect(judgePhase(ended(0), program([{ summary: "no status" }], false)).outcome).toMatchObject({
      kind: "completed",
      verdictReason: "no status",
    });
    expect(judgePhase(ended(0), program([], false)).outcome).toMatchObject({
      kind: "completed",
      output: { status: "success", output: "tail" },
    });
    expect(judgePhase(ended(0), program([{ status: "odd" }], false)).outcome).toMatchObject({
      failure: "invalid_result",
    });
    expect(
      judgePhase(ended(0), program([{ status: "odd" }, { status: "success" }])).outcome,
    ).toMatchObject({ kind: "completed" });
  });

  it("of a module is a value unless its status is a text", () => {
    const returned = (output: unknown): AttemptOutcome => ({
      kind: "completed",
      output,
      verdict: "unknown",
      verdictReason: "",
      exitCode: null,
    });
    const judged = (output: unknown) => judgePhase(returned(output), { by: "module" }).outcome;
    for (const value of [null, 7, "text", [1], { status: 200 }, { a: 1 }])
      expect(judged(value)).toMatchObject({ kind: "completed", output: { status: "success" } });
    expect(judged({ status: "fail", summary: "no" })).toMatchObject({
      failure: "reported",
      message: "no",
    });
    expect(judged({ status: "ok" })).toMatchObject({ failure: "invalid_result" });
  });
});

describe("the phases", () => {
  it("follow from the type, the node's own program and the agent", () => {
    expect(phasesOf("task", false, {})).toEqual(PHASES);
    expect(phasesOf("plan", false, {})).toEqual(["PLAN"]);
    expect(phasesOf("final_verify", false, {})).toEqual(["VERIFY"]);
    expect(phasesOf("integrate", false, {})).toEqual(["IMPLEMENT"]);
    expect(phasesOf("plan", true, { phases: ["SPEC"] })).toEqual(["IMPLEMENT"]);
    expect(phasesOf("plan", false, { phases: ["SPEC"] })).toEqual(["SPEC"]);
  });

  it("are repeated from the work on when the work is bad, else where it failed", () => {
    expect(phaseToRepeat(PHASES, "REVIEW")).toBe("IMPLEMENT");
    expect(phaseToRepeat(PHASES, undefined)).toBe("IMPLEMENT");
    expect(phaseToRepeat(PHASES, "SPEC")).toBe("SPEC");
    expect(phaseToRepeat(["PLAN"], undefined)).toBe("PLAN");
    expect(phaseToRepeat(["VERIFY"], "VERIFY")).toBe("VERIFY");
  });
});
