/** What follows from how an attempt ended: complete, retry, release or fail, and after which wait. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  type AttemptOutcome,
  backoffMs,
  decide,
  errorText,
  type Failed,
  headlineOf,
  outcomeOfExit,
  type RetryPolicy,
} from "../../src/core/outcome.ts";

const SILENT = { output: null, verdict: "", verdictReason: "", status: null, message: null };
const POLICY: RetryPolicy = { maxAttempts: 3, backoffMs: 1000, backoffMaxMs: 300_000 };
const MIDDLE = 0.5;

const failed = (canRetry: boolean): AttemptOutcome => ({
  kind: "failed",
  failure: "exit",
  code: "ErrExit",
  message: "",
  exitCode: 1,
  signal: null,
  canRetry,
});

describe("an exit code", () => {
  it("of 0 completes, with what the program reported", () => {
    const report = {
      output: { a: 1 },
      verdict: "pass",
      verdictReason: "all green",
      status: "ok",
      message: null,
    };
    expect(outcomeOfExit(0, report)).toEqual({
      kind: "completed",
      output: { a: 1 },
      verdict: "pass",
      verdictReason: "all green",
      exitCode: 0,
    });
  });

  it("of 0 with a reported failure fails, and may be tried again", () => {
    expect(outcomeOfExit(0, { ...SILENT, status: "fail" })).toMatchObject({
      kind: "failed",
      code: "ErrReportedFailure",
      canRetry: true,
      exitCode: 0,
    });
  });

  it("of 75 asks for later, whatever the program reported", () => {
    expect(outcomeOfExit(75, { ...SILENT, status: "fail" })).toMatchObject({
      kind: "deferred",
      delayMs: null,
    });
  });

  it.each([64, 65, 78])("of %i fails for good", (exitCode) => {
    expect(outcomeOfExit(exitCode, SILENT)).toMatchObject({
      kind: "failed",
      exitCode,
      canRetry: false,
    });
  });

  it("of anything else fails, and may be tried again", () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 255 }), (exitCode) => {
        fc.pre(![64, 65, 75, 78].includes(exitCode));
        const outcome = outcomeOfExit(exitCode, SILENT);
        expect(outcome).toMatchObject({
          kind: "failed",
          failure: "exit",
          code: "ErrExit",
          exitCode,
          canRetry: true,
        });
        expect(outcome).toHaveProperty("message", expect.stringContaining(String(exitCode)));
      }),
    );
  });

  it("is explained in the program's own words when it gave some", () => {
    expect(outcomeOfExit(1, { ...SILENT, message: "no such branch" })).toHaveProperty(
      "message",
      "no such branch",
    );
    expect(outcomeOfExit(75, { ...SILENT, message: "rate limit" })).toHaveProperty(
      "message",
      "rate limit",
    );
  });
});

describe("a decision", () => {
  it("is to complete what completed, even beyond the last attempt", () => {
    const completed = outcomeOfExit(0, SILENT);
    expect(decide(completed, 1, POLICY, MIDDLE)).toEqual({ action: "complete" });
    expect(decide(completed, 99, POLICY, MIDDLE)).toEqual({ action: "complete" });
  });

  it("gives a task of N attempts exactly N runs", () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 1000 }),
        fc.double({ min: 0, max: 0.999, noNaN: true }),
        (maxAttempts, random) => {
          const policy = { ...POLICY, maxAttempts };
          let runs = 1;
          while (decide(failed(true), runs, policy, random).action === "retry") runs++;
          expect(runs).toBe(maxAttempts);
        },
      ),
      { numRuns: 30 },
    );
  });

  it("is to fail at the first attempt when another run cannot help", () => {
    expect(decide(failed(false), 1, POLICY, MIDDLE)).toEqual({ action: "fail" });
  });

  it("is to release what was deferred, at any attempt, after the wait it asked for", () => {
    for (const attempt of [1, 3, 99]) {
      expect(
        decide({ kind: "deferred", message: "", delayMs: 5 }, attempt, POLICY, MIDDLE),
      ).toEqual({ action: "release", delayMs: 5 });
      expect(
        decide({ kind: "deferred", message: "", delayMs: 0 }, attempt, POLICY, MIDDLE),
      ).toEqual({ action: "release", delayMs: 0 });
    }
    expect(
      decide({ kind: "deferred", message: "", delayMs: 5, hold: "quota-max" }, 9, POLICY, MIDDLE),
    ).toEqual({ action: "hold", gate: "quota-max", delayMs: 5 });
    expect(decide({ kind: "deferred", message: "", delayMs: null }, 1, POLICY, MIDDLE)).toEqual({
      action: "release",
      delayMs: 1000,
    });
  });

  it("is to release at once what a graceful stop gave back", () => {
    expect(decide({ kind: "released", message: "" }, 99, POLICY, MIDDLE)).toEqual({
      action: "release",
      delayMs: 0,
    });
  });
});

describe("the backoff", () => {
  it("doubles with each attempt", () => {
    expect([1, 2, 3, 4].map((attempt) => backoffMs(attempt, POLICY, MIDDLE))).toEqual([
      1000, 2000, 4000, 8000,
    ]);
  });

  it("spreads over 75 % to 125 %, and never exceeds its limit", () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 2000 }),
        fc.integer({ min: 0, max: 3_600_000 }),
        fc.integer({ min: 0, max: 86_400_000 }),
        fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
        (attempt, base, max, random) => {
          const delay = backoffMs(
            attempt,
            { maxAttempts: 1, backoffMs: base, backoffMaxMs: max },
            random,
          );
          const full = Math.min(base * 2 ** Math.min(attempt - 1, 60), max);
          expect(Number.isSafeInteger(delay)).toBe(true);
          expect(delay).toBeGreaterThanOrEqual(Math.floor(full * 0.75));
          expect(delay).toBeLessThanOrEqual(Math.min(Math.ceil(full * 1.25), max));
        },
      ),
      { numRuns: 500 },
    );
    expect(backoffMs(1, POLICY, 0)).toBe(750);
    expect(backoffMs(1, POLICY, 0.999)).toBe(1250);
  });
});

describe("the text of an error record", () => {
  const exit = outcomeOfExit(65, SILENT) as Failed;
  const words = "reading input.csv\ninput.csv: line 3: expected 4 columns, found 3";

  it("begins with what the program said last, and gives the exit code after it", () => {
    expect(errorText({ ...exit, lastWords: words })).toBe(
      `${words} (the program ended with exit code 65, which means: do not retry)`,
    );
    expect(errorText(exit)).toBe("the program ended with exit code 65, which means: do not retry");
  });

  it("begins with the signal where one ended the program", () => {
    const killed: Failed = { ...exit, failure: "signal", message: "it was ended by SIGKILL" };
    expect(errorText({ ...killed, lastWords: "working" })).toBe("it was ended by SIGKILL: working");
  });

  it("is told in one line by the last line of the program, and otherwise by its first", () => {
    expect(headlineOf(errorText({ ...exit, lastWords: words }))).toBe(
      "input.csv: line 3: expected 4 columns, found 3 (the program ended with exit code 65, which means: do not retry)",
    );
    expect(headlineOf("TypeError: x is no function\n    at run (handler.js:3:1)")).toBe(
      "TypeError: x is no function",
    );
    expect(headlineOf("\n\n")).toBe("");
  });
});
