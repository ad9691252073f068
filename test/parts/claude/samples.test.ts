/** What the real program has said (version 2.1.330, against a mock of the service), and what each of these runs comes to. */
import { readdirSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { NOW_MS, play, sample } from "./play.ts";

const [A, B, C] = ["1", "2", "3"].map(
  (d) => `${d.repeat(8)}-${d.repeat(4)}-4${d.repeat(3)}-8${d.repeat(3)}-${d.repeat(12)}`,
) as [string, string, string];

/** Sample, how the program ended, which messages it had from us, the outcome. */
const RUNS: readonly (readonly [string, Parameters<typeof play>[1], string])[] = [
  ["ok", {}, "completed"],
  ["resume", { sent: [C] }, "completed"],
  ["mail", { sent: [A, B] }, "completed"],
  ["mail-later", { sent: [A, B, C] }, "completed"],
  ["mail-now", { sent: [A, B] }, "completed"],
  ["repeat-while-open", { sent: [A, B] }, "completed"],
  ["dropped-repeat", { sent: [A], isResumed: true }, "failed interrupted"],
  ["background", { sent: [A] }, "completed"],
  ["background-sigterm", { sent: [A], exitCode: 143 }, "failed exit"],
  ["background-sigterm", { sent: [A], exitCode: 143, hasStoppedBackground: true }, "completed"],
  ["subagent", { sent: [A] }, "completed"],
  ["compact", {}, "completed"],
  ["flaky", { sent: [A] }, "completed"],
  ["quota-warning", { sent: [A] }, "completed"],
  ["tool-results", { sent: [A] }, "completed"],
  ["denied-tools", { sent: [A] }, "failed permission, for good"],
  // It went another way after the refusal.
  ["one-denied", { sent: [A] }, "completed"],
  ["401", { exitCode: 1 }, "deferred 60000"],
  ["401", { exitCode: 1, wasRefused: true }, "failed auth, for good"],
  ["401-mid-run", { exitCode: 1 }, "deferred 60000"],
  ["429-retry-after", { exitCode: 1 }, "deferred null"],
  ["403", { exitCode: 1 }, "deferred 60000"],
  ["not-logged-in", { exitCode: 1 }, "deferred 60000"],
  ["403-billing", { exitCode: 1 }, "failed config, for good"],
  ["400-credit", { exitCode: 1 }, "failed config, for good"],
  ["400", { exitCode: 1 }, "failed agent, for good"],
  ["404-model", { exitCode: 1 }, "failed config, for good"],
  ["limit", { sent: [A], exitCode: 1 }, `deferred ${1_795_481_931_000 - NOW_MS}`],
  ["429-api-key", { exitCode: 1 }, "deferred null"],
  ["529", { exitCode: 1 }, "deferred null"],
  ["500", { exitCode: 1 }, "deferred null"],
  ["no-connection", { exitCode: 1 }, "deferred null"],
  ["no-answer", { exitCode: 1 }, "deferred null"],
  ["prompt-too-long", { exitCode: 1 }, "failed agent, for good"],
  ["max-turns", { exitCode: 1 }, "failed agent"],
  ["max-budget", { exitCode: 1 }, "failed agent"],
  ["sigint", { sent: [A], exitCode: 0 }, "failed interrupted"],
  ["sigterm", { sent: [A], exitCode: 143 }, "failed interrupted"],
  ["term-early", { exitCode: 143 }, "failed interrupted"],
  ["lost-session", { exitCode: 1, isResumed: true }, "fresh session"],
  ["lost-session", { exitCode: 1 }, "failed interrupted"],
];

describe("samples of the real program", () => {
  it("all have an outcome in this table", () => {
    const names = readdirSync(new URL("samples", import.meta.url));
    expect([...new Set(RUNS.map(([name]) => `${name}.jsonl`))].sort()).toEqual(names.sort());
  });

  it.each(RUNS)("%s with %o comes to: %s", (name, ending, outcome) => {
    expect(play(sample(name), ending).outcome).toBe(outcome);
  });

  it("have no line that the reader does not know", () => {
    for (const [name] of RUNS)
      expect(play(sample(name)).facts.filter(({ fact }) => fact === "unknown")).toEqual([]);
  });

  it("end with a run that is over, where it has ended well", () => {
    for (const [name, ending, outcome] of RUNS)
      if (outcome === "completed" && ending?.hasStoppedBackground !== true)
        expect([name, play(sample(name), ending).isOver]).toEqual([name, true]);
  });

  it("leave no tool call open, but for a run that was ended in one", () => {
    for (const [name] of RUNS)
      expect([name, play(sample(name)).state.openTools.size]).toEqual([
        name,
        name === "sigterm" ? 1 : 0,
      ]);
  });
});

describe("a sample, line by line", () => {
  it("a run is not over while its background task runs, nor before the turn that follows it", () => {
    const lines = sample("background");
    const isOverAfter = lines.map((_, i) => play(lines.slice(0, i + 1), { sent: [A] }).isOver);
    expect(isOverAfter.indexOf(true)).toBe(lines.length - 1);
  });

  it("mail is read at the end of the tool call, and its late echo does not open a turn", () => {
    const messages = play(sample("mail")).facts.filter(({ fact }) => fact === "message");
    expect(messages.map((m) => "uuid" in m && "state" in m && `${m.uuid[0]} ${m.state}`)).toEqual([
      "1 queued",
      "1 read",
      "2 queued",
      "2 read",
      "2 done",
      "1 done",
    ]);
  });

  it("a repeat after a resume is over at once, without a turn", () => {
    const { isOver, state } = play(sample("dropped-repeat"), { sent: [A] });
    expect([isOver, state.turn]).toEqual([true, "none"]);
  });

  it("books what a resumed run has added, and knows the sum", () => {
    const { partUsage, sessionUsage } = play(sample("resume")).state;
    expect([partUsage.costUsdMicro, sessionUsage?.costUsdMicro]).toEqual([3450, 6900]);
    expect([partUsage.inputTokens, sessionUsage?.inputTokens]).toEqual([1000, 2000]);
  });

  it("books a failed run, too", () => {
    expect(play(sample("limit")).state.partUsage.costUsdMicro).toBe(3450);
  });

  it("counts cached tokens as a part of the input", () => {
    const { partUsage } = play(sample("ok")).state;
    expect([partUsage.inputTokens, partUsage.cachedInputTokens]).toEqual([2600, 200]);
  });

  it("tells of compaction, exit codes, changed files and windows of the quota", () => {
    const compact = play(sample("compact")).facts.map(({ fact }) => fact);
    expect(compact.filter((fact) => fact.startsWith("compact"))).toEqual([
      "compacting",
      "compacted",
    ]);
    const tools = play(sample("tool-results")).facts;
    expect(tools).toContainEqual(expect.objectContaining({ fact: "tool_ended", exitCode: 3 }));
    expect(tools.filter(({ fact }) => fact === "file_changed")).toEqual([
      { fact: "file_changed", path: "/home/me/app/a.txt", change: "create" },
      { fact: "file_changed", path: "/home/me/app/a.txt", change: "update" },
    ]);
    const windows = play(sample("quota-warning")).facts.filter(({ fact }) => fact === "quota");
    expect(windows.map((w) => "window" in w && `${w.window} ${w.usedPct} ${w.isRejected}`)).toEqual(
      ["null null false", "five_hour 91 false", "seven_day 40 false"],
    );
  });
});
