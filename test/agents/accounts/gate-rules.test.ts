/** When runs of an account may start: after a limit one probe, then one after another. */
import { describe, expect, it } from "vitest";
import {
  closeGate,
  enterGate,
  type GateDocument,
  leaveGate,
  noteWindow,
  openGate,
  passGate,
} from "../../../src/agents/accounts/gate-rules.ts";

const ALIVE = (): boolean => true;
const DEAD = (): boolean => false;
const NOW = 1_795_478_400_000;
const HOUR = 3_600_000;

const closedFor = (ms: number): GateDocument =>
  closeGate(
    openGate("max"),
    { untilMs: NOW + ms, window: "five_hour", reason: "5-hour limit" },
    NOW,
    0.5,
  );

describe("the gate of an account", () => {
  it("lets every run pass while it is open", () => {
    const gate = openGate("max");
    expect(enterGate(gate, "a", NOW, ALIVE)).toEqual({ may: true, gate });
  });

  it("lets no run pass before the time that the service gave", () => {
    const gate = closedFor(HOUR);
    expect(enterGate(gate, "a", NOW + HOUR - 1, ALIVE)).toMatchObject({
      may: false,
      untilMs: NOW + HOUR,
      why: "5-hour limit",
    });
  });

  it("lets one run probe after that time, and the others wait for its answer", () => {
    const first = enterGate(closedFor(HOUR), "a", NOW + HOUR, ALIVE);
    expect(first.may).toBe(true);
    expect(enterGate(first.gate, "b", NOW + HOUR + 1, ALIVE).may).toBe(false);
    const answered = passGate(first.gate, "a");
    const second = enterGate(answered, "b", NOW + HOUR + 2, ALIVE);
    expect(second.may).toBe(true);
    expect(enterGate(second.gate, "c", NOW + HOUR + 3, ALIVE).may).toBe(false);
  });

  it("is open for all after five answers in a row", () => {
    let gate = closedFor(HOUR);
    for (const owner of ["a", "b", "c", "d", "e"])
      gate = passGate(enterGate(gate, owner, NOW + HOUR, ALIVE).gate, owner);
    expect(gate).toEqual(openGate("max"));
  });

  it("gives the place of a probe that died, ended without an answer, or takes too long to the next run", () => {
    const { gate } = enterGate(closedFor(HOUR), "a", NOW + HOUR, ALIVE);
    expect(enterGate(gate, "b", NOW + HOUR + 1, DEAD).may).toBe(true);
    expect(enterGate(leaveGate(gate, "a"), "b", NOW + HOUR + 1, ALIVE).may).toBe(true);
    expect(enterGate(gate, "b", NOW + 2 * HOUR, ALIVE).may).toBe(true);
  });

  it("is not opened by the answer of a run that started before it was closed", () => {
    const gate = closedFor(HOUR);
    expect(passGate(gate, "a")).toBe(gate);
  });

  it("is closed again when the probe is refused", () => {
    const { gate } = enterGate(closedFor(HOUR), "a", NOW + HOUR, ALIVE);
    const again = closeGate(
      gate,
      { untilMs: NOW + 5 * HOUR, window: null, reason: "weekly limit" },
      NOW + HOUR + 5,
      0.5,
    );
    expect(again).toMatchObject({ status: "closed", until_ms: NOW + 5 * HOUR, probe: null });
  });

  it("lets a run find out how it stands when a wrong clock closed it", () => {
    const ahead = closeGate(
      openGate("max"),
      { untilMs: NOW + 9001 * HOUR, window: null, reason: "5-hour limit" },
      NOW + 9000 * HOUR,
      0.5,
    );
    expect(enterGate(ahead, "a", NOW, ALIVE).may).toBe(true);
    const far = { ...closedFor(HOUR), until_ms: NOW + 9000 * HOUR };
    expect(enterGate(far, "a", NOW, ALIVE).may).toBe(true);
  });

  it.each([
    ["is over already", NOW - 1],
    ["lies further ahead than any window of a quota", NOW + 9000 * HOUR],
  ])("is closed for a short time when the time that the service gave %s", (_what, untilMs) => {
    const refusal = { untilMs, window: null, reason: "limit" };
    const gate = closeGate(openGate("max"), refusal, NOW, 0.5);
    expect(gate).toMatchObject({ status: "closed", until_ms: NOW + 30_000, closings: 1 });
  });

  it("keeps the latest of the times that several runs were given", () => {
    const earlier = { untilMs: NOW + 60_000, window: null, reason: "other window" };
    expect(closeGate(closedFor(HOUR), earlier, NOW + 10, 0.5).until_ms).toBe(NOW + HOUR);
  });

  it("waits twice as long each time the service gives no time, and never more than an hour and a quarter", () => {
    const refusal = { untilMs: null, window: null, reason: "429" };
    let gate = openGate("max");
    const waits: number[] = [];
    for (let nowMs = NOW, n = 0; n < 9; n++) {
      gate = closeGate(gate, refusal, nowMs, 0.5);
      waits.push(gate.until_ms - nowMs);
      nowMs = gate.until_ms;
      gate = enterGate(gate, "a", nowMs, ALIVE).gate;
    }
    expect(waits.slice(0, 4)).toEqual([30_000, 60_000, 120_000, 240_000]);
    expect(Math.max(...waits)).toBe(HOUR);
  });
});

describe("the part of a quota that is left to the owner of the account", () => {
  const used = (pct: number, endMs: number, gate = openGate("max")): GateDocument =>
    noteWindow(gate, "five_hour", { used_pct: pct, resets_at_ms: endMs }, NOW);

  it.each([
    ["less is used", used(79, NOW + HOUR), 20],
    ["nothing is to be left", used(100, NOW + HOUR), 0],
    ["the window has ended", used(90, NOW), 20],
    ["the window ends later than any does", used(90, NOW + 9e11), 20],
    ["no window is known", openGate("max"), 20],
  ])("holds back no run when %s", (_what, gate, reservePct) => {
    expect(enterGate(gate, "a", NOW, ALIVE, reservePct).may).toBe(true);
  });

  it("is kept until the last window that is so full has ended", () => {
    const week = { used_pct: 80, resets_at_ms: NOW + 100 * HOUR };
    const gate = noteWindow(used(90, NOW + HOUR), "seven_day", week, NOW);
    expect(enterGate(gate, "a", NOW, ALIVE, 20)).toMatchObject({
      may: false,
      untilMs: NOW + 100 * HOUR,
      why: "the last 20 % of its quota (seven_day) are left to its owner",
    });
    expect(enterGate(gate, "a", NOW, ALIVE, 15)).toMatchObject({ untilMs: NOW + HOUR });
  });

  it("is known over a limit, and forgotten when its window has ended", () => {
    let gate = used(90, NOW + 2 * HOUR, closedFor(HOUR));
    expect(enterGate(gate, "a", NOW, ALIVE, 20)).toMatchObject({ untilMs: NOW + 2 * HOUR });
    for (const owner of ["a", "b", "c", "d", "e"])
      gate = passGate(enterGate(gate, owner, NOW + HOUR, ALIVE).gate, owner);
    expect(gate.status).toBe("open");
    expect(enterGate(gate, "a", NOW + HOUR, ALIVE, 20).may).toBe(false);
    const later = NOW + 3 * HOUR;
    const next = { used_pct: 1, resets_at_ms: later + HOUR };
    expect(Object.keys(noteWindow(gate, "week", next, later).windows ?? {})).toEqual(["week"]);
  });
});
