/** What the refusals of services mean, and when they take requests again. */
import { describe, expect, it } from "vitest";
import { readRefusal, readWindows } from "../../../src/parts/meter/refusal.ts";

const NOW_MS = Date.parse("2026-11-01T12:00:00Z");
const IN_HOUR_S = NOW_MS / 1000 + 3600;
const error = (members: { type?: string; message?: string } & Record<string, unknown> = {}) => ({
  type: members.type ?? "",
  text: members.message ?? "",
  members,
});

describe("a refusal", () => {
  it.each([
    [429, "limit"],
    [402, "config"],
    [401, "auth"],
    [403, "auth"],
    [500, "overload"],
    [503, "overload"],
    [529, "overload"],
  ])("with status %i is about %s", (status, fault) => {
    expect(readRefusal(status, {}, undefined, NOW_MS)).toMatchObject({ fault, status });
  });

  it.each([200, 400, 404, 413, 422])("is none with status %i", (status) => {
    expect(readRefusal(status, {}, undefined, NOW_MS)).toBeUndefined();
  });

  it.each([
    ["overloaded_error", "overload"],
    ["rate_limit_error", "limit"],
    ["authentication_error", "auth"],
  ])("may come within an answer: %s", (type, fault) => {
    expect(readRefusal(200, {}, error({ type, message: "no" }), NOW_MS)).toMatchObject({
      fault,
      text: expect.stringMatching(/^HTTP \d+: no$/),
    });
  });

  it("of an account that must pay is no limit, because waiting does not help", () => {
    const must = error({ type: "insufficient_quota", message: "You exceeded your current quota" });
    expect(readRefusal(429, {}, must, NOW_MS)).toMatchObject({ fault: "config" });
  });
});

describe("the end of a limit", () => {
  const REJECTED = { "anthropic-ratelimit-unified-status": "rejected" };
  it.each([
    ["seconds", { "retry-after": "30" }, {}, NOW_MS + 30_000],
    ["ms", { "retry-after-ms": "1500" }, {}, NOW_MS + 1500],
    ["a date", { "retry-after": "Sun, 01 Nov 2026 13:00:00 GMT" }, {}, IN_HOUR_S * 1000],
    [
      "a window of a subscription",
      { ...REJECTED, "anthropic-ratelimit-unified-reset": String(IN_HOUR_S), "retry-after": "9" },
      {},
      IN_HOUR_S * 1000,
    ],
    ["a time in the body", {}, { resets_at: IN_HOUR_S }, IN_HOUR_S * 1000],
    ["seconds in the body", {}, { resets_in_seconds: 60 }, NOW_MS + 60_000],
    ["a delay of Gemini", {}, { details: [{}, { retryDelay: "27s" }] }, NOW_MS + 27_000],
    ["nothing", {}, {}, null],
    ["the past", {}, { resets_at: 1000 }, null],
    ["no number", { "retry-after": "soon" }, {}, null],
    ["a window that is open", { "anthropic-ratelimit-unified-reset": String(IN_HOUR_S) }, {}, null],
  ])("is given by %s", (_, headers, members, resetsAtMs) => {
    expect(readRefusal(429, headers, error(members), NOW_MS)).toMatchObject({ resetsAtMs });
  });
});

it("tells how full the windows of a quota are, by the names that the programs have for them", () => {
  const headers = {
    "anthropic-ratelimit-unified-5h-utilization": "0.25",
    "anthropic-ratelimit-unified-5h-reset": String(IN_HOUR_S),
    "anthropic-ratelimit-unified-7d-utilization": "0.5",
    "x-codex-primary-used-percent": "40",
    "x-codex-primary-window-minutes": "300",
    "x-codex-primary-reset-at": String(IN_HOUR_S),
  };
  const resetsAtMs = IN_HOUR_S * 1000;
  expect(readWindows(headers)).toEqual([
    { note: "window", window: "five_hour", usedPct: 25, resetsAtMs },
    { note: "window", window: "5h", usedPct: 40, resetsAtMs },
  ]);
});
