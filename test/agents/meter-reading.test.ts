/** What follows from what a meter sees, when a run asks several models. */
import { describe, expect, it } from "vitest";
import type { MeterNote } from "../../src/agents/meter.ts";
import { MeterReading } from "../../src/agents/meter-reading.ts";
import { NO_USAGE } from "../../src/agents/stream/run-state.ts";

const MAIN = "0 opus";
const SIDE = "0 haiku";
const NOW_MS = Date.parse("2026-11-01T12:00:00Z");
const HOUR_MS = 3_600_000;

const asked = (of: string): MeterNote => ({ note: "asked", of, size: of === MAIN ? 90_000 : 900 });
const answered = (of: string): MeterNote => ({ note: "answered", of, isCounted: true });
const refused = (of: string, resetsAtMs: number | null = NOW_MS + HOUR_MS): MeterNote => ({
  note: "refused",
  of,
  fault: "limit",
  status: 429,
  resetsAtMs,
  text: "HTTP 429",
});
const used = (of: string, inputTokens: number): MeterNote => ({
  note: "used",
  of,
  model: of.slice(2),
  usage: { inputTokens, cachedInputTokens: 0, outputTokens: 0, costUsdMicro: null },
});

function readingOf(...notes: MeterNote[]): MeterReading {
  const reading = new MeterReading();
  for (const note of notes) reading.take(note, NOW_MS);
  return reading;
}

describe("a run", () => {
  it("is stopped ten seconds after a refusal for an hour, and a minute after one without a time", () => {
    const far = readingOf(asked(MAIN), refused(MAIN));
    expect(far.explainLimit(NOW_MS + 9999)).toBeUndefined();
    expect(far.explainLimit(NOW_MS + 10_000)).toBe("HTTP 429");
    const near = readingOf(asked(MAIN), refused(MAIN, null));
    expect(near.explainLimit(NOW_MS + 59_999)).toBeUndefined();
    expect(near.explainLimit(NOW_MS + 60_000)).toBe("HTTP 429");
  });

  it("is not stopped while it waits for an answer, nor after one", () => {
    const waits = readingOf(asked(MAIN), refused(MAIN), asked(MAIN));
    expect(waits.explainLimit(NOW_MS + HOUR_MS)).toBeUndefined();
    waits.take(answered(MAIN), NOW_MS);
    expect(waits.refused).toBeUndefined();
  });

  it("counts the first of several refusals in a row", () => {
    const reading = readingOf(asked(MAIN), refused(MAIN));
    reading.take(asked(MAIN), NOW_MS + 9000);
    reading.take(refused(MAIN), NOW_MS + 9500);
    expect(reading.explainLimit(NOW_MS + 10_000)).toBe("HTTP 429");
  });

  it("is not refused when only the model of its side requests is", () => {
    const reading = readingOf(asked(MAIN), answered(MAIN), asked(SIDE), refused(SIDE));
    expect(reading.refused).toBeUndefined();
    expect(reading.explainLimit(NOW_MS + HOUR_MS)).toBeUndefined();
  });

  it("is refused although the model of its side requests answers", () => {
    const reading = readingOf(asked(SIDE), answered(SIDE), asked(MAIN), refused(MAIN), asked(SIDE));
    reading.take(answered(SIDE), NOW_MS + 5000);
    expect(reading.explainLimit(NOW_MS + 10_000)).toBe("HTTP 429");
  });
});

describe("its costs", () => {
  it("are priced by model, and have no price when one of them has none", () => {
    const reading = readingOf(used(MAIN, 100), used(SIDE, 10), used(MAIN, 100));
    const opus = { input_usd: 5, output_usd: 25 };
    const haiku = { input_usd: 1, output_usd: 5 };
    expect(reading.used({ opus, haiku })).toMatchObject({ inputTokens: 210, costUsdMicro: 1010 });
    expect(reading.used({ opus })).toMatchObject({ inputTokens: 210, costUsdMicro: null });
    expect(reading.model).toBe("opus");
  });

  it("have a gap when the program reports more, or an answer does not say its tokens", () => {
    const reading = readingOf(asked(MAIN), used(MAIN, 100), answered(MAIN));
    expect(reading.explainGap({ ...NO_USAGE, inputTokens: 110 })).toBeUndefined();
    expect(reading.explainGap({ ...NO_USAGE, inputTokens: 900 })).toMatch(/another address/);
    reading.take(asked(MAIN), NOW_MS);
    reading.take({ note: "answered", of: MAIN, isCounted: false }, NOW_MS);
    expect(reading.explainGap(NO_USAGE)).toMatch(/include_usage/);
  });
});
