/** What the machine refuses just now: named as long as it does, and no longer. */
import { expect, it } from "vitest";
import { systemClock } from "../../../src/host/system-clock.ts";
import { Shortages } from "../../../src/supervisor/pool/shortages.ts";

it("what shows in deaths only is over when there was none for a minute", () => {
  let nowMs = 0;
  const shortages = new Shortages({ ...systemClock, monotonicMs: () => nowMs });
  shortages.note("threads", "few threads", "raise it");
  shortages.noteDeath("memory", "memory is short", "raise that");
  nowMs = 50_000;
  shortages.noteDeath("memory", "memory is short", "raise that");
  nowMs = 100_000;
  expect(shortages.list()).toEqual([
    { what: "few threads", do: "raise it" },
    { what: "memory is short", do: "raise that" },
  ]);
  nowMs = 120_000;
  expect(shortages.list()).toEqual([{ what: "few threads", do: "raise it" }]);
});
