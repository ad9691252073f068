/** A task that fails in the same way in three runs in a row is not tried again. */
import { expect, it } from "vitest";
import { countFailure } from "../../../src/agents/stream/same-failure.ts";
import type { SessionDocument } from "../../../src/agents/stream/session-file.ts";
import type { AttemptOutcome } from "../../../src/core/outcome.ts";

const newSession = (): SessionDocument => ({}) as SessionDocument;
const failed = (code = "ErrAgent"): AttemptOutcome =>
  ({
    kind: "failed",
    failure: "agent",
    code,
    message: "it broke",
    canRetry: true,
  }) as AttemptOutcome;
const completed = { kind: "completed" } as AttemptOutcome;

const retries = (session: SessionDocument, outcomes: AttemptOutcome[]): boolean[] =>
  outcomes.map((outcome) => {
    const counted = countFailure(session, outcome, false);
    return counted.kind !== "failed" || counted.canRetry;
  });

it("allows no retry after the third failure of one kind in a row", () => {
  expect(retries(newSession(), [failed(), failed(), failed()])).toEqual([true, true, false]);
});

it("counts from one again after a failure of another kind", () => {
  const outcomes = [failed(), failed(), failed("ErrOther"), failed(), failed()];
  expect(retries(newSession(), outcomes)).toEqual([true, true, true, true, true]);
});

it("counts from one again after a completed run", () => {
  const outcomes = [failed(), failed(), completed, failed(), failed(), failed()];
  expect(retries(newSession(), outcomes)).toEqual([true, true, true, true, true, false]);
});
