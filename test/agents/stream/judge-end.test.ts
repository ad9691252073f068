/** How a run ends of which its program tells too little: by its meter, by a silence, and by a disk that was full. */
import { describe, expect, it } from "vitest";
import type { ProgramEnd } from "../../../src/agents/program.ts";
import type { Fact } from "../../../src/agents/stream/facts.ts";
import { judgeEnd } from "../../../src/agents/stream/judge-end.ts";
import { applyFact, newRunState } from "../../../src/agents/stream/run-state.ts";
import { failed } from "../../../src/core/outcome.ts";

const NOW_MS = Date.parse("2026-11-01T12:00:00Z");
const HOUR_MS = 3_600_000;
type Parts = Parameters<typeof judgeEnd>[2];

const refusedBy = (fault: "limit" | "overload" | "config"): NonNullable<Parts["refused"]> => ({
  fault,
  status: 429,
  resetsAtMs: fault === "limit" ? NOW_MS + HOUR_MS : null,
  text: "HTTP 429",
  sinceMs: NOW_MS,
});
const turnEnded = (fault?: "other" | "limit" | "config"): Fact => ({
  fact: "turn_ended",
  end: { fault, text: "I stop.", answers: undefined, denied: [] },
});
const SAID: Fact = { fact: "said", text: "Hm." };
const EXITED: ProgramEnd = { exitCode: 0 };
const IDLE = { outcome: failed("timeout", "ErrIdle", "it was silent for too long") };

function outcomeOf(facts: readonly Fact[], end: ProgramEnd, parts: Partial<Parts>): object {
  const state = newRunState();
  for (const fact of facts) applyFact(state, fact);
  const verdict = judgeEnd(
    end,
    { state, hasLostSession: false },
    {
      ownStop: undefined,
      halt: undefined,
      refused: undefined,
      isSilentAtLimit: false,
      facts: { isResumed: false, wasRefused: false, nowMs: NOW_MS },
      lastWords: "",
      ...parts,
    },
  );
  return verdict.next === "outcome" ? verdict.outcome : {};
}

describe("a run whose last request was refused", () => {
  const PUT_OFF = { kind: "deferred", delayMs: HOUR_MS };

  it.each([
    ["says only that something is wrong", [SAID, turnEnded("other")]],
    ["knows its limit, and not until when", [SAID, turnEnded("limit")]],
    ["says nothing at its end", [SAID]],
  ])("waits for the time that the service gave: its program %s", (_, facts) => {
    expect(outcomeOf(facts, EXITED, { refused: refusedBy("limit") })).toMatchObject(PUT_OFF);
  });

  it("keeps the fault that its program knows", () => {
    const config = [SAID, turnEnded("config")];
    expect(outcomeOf(config, EXITED, { refused: refusedBy("overload") })).toMatchObject({
      kind: "failed",
      failure: "config",
    });
  });

  it("is good if its program says so, but for one whose word is no proof", () => {
    const good = [SAID, turnEnded()];
    const refused = refusedBy("limit");
    expect(outcomeOf(good, EXITED, { refused })).toMatchObject({ kind: "completed" });
    expect(outcomeOf(good, EXITED, { refused, isSilentAtLimit: true })).toMatchObject(PUT_OFF);
    const paid = { refused: refusedBy("config"), isSilentAtLimit: true };
    expect(outcomeOf(good, EXITED, paid)).toMatchObject({ kind: "completed" });
  });

  it("waits when it was stopped for that, or was silent", () => {
    const refused = refusedBy("limit");
    const stopped: ProgramEnd = { outcome: { kind: "released", message: "quota" } };
    expect(outcomeOf([SAID], stopped, { refused, ownStop: "quota" })).toMatchObject(PUT_OFF);
    expect(outcomeOf([SAID], IDLE, { refused, ownStop: "idle" })).toMatchObject(PUT_OFF);
  });

  it("waits three times when it hangs after an overload, and then it has failed", () => {
    const parts: Partial<Parts> = { refused: refusedBy("overload"), ownStop: "idle" };
    const facts = { isResumed: false, wasRefused: false, nowMs: NOW_MS };
    const endAfter = (silentRuns: number) =>
      outcomeOf([SAID], IDLE, { ...parts, facts: { ...facts, silentRuns } });
    expect(endAfter(2)).toMatchObject({ kind: "deferred" });
    expect(endAfter(3)).toMatchObject({ kind: "failed", code: "ErrIdle" });
  });
});

it("a silence is no fault of a run whose disk was nearly full", () => {
  const parts: Partial<Parts> = { ownStop: "idle" };
  expect(outcomeOf([SAID], { ...IDLE, wasShort: true as const }, parts)).toMatchObject({
    kind: "deferred",
  });
  expect(outcomeOf([SAID], IDLE, parts)).toMatchObject({ kind: "failed", code: "ErrIdle" });
});
