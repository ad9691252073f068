/** The rollout file of a thread: what its lines say, and where it is. */
import fs from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { expect, it } from "vitest";
import { findRollout } from "../../../src/parts/codex/find-rollout.ts";
import { newCodexRolloutReader } from "../../../src/parts/codex/read-rollout-line.ts";
import { tempDir } from "../../support/temp-dir.ts";
import { factsOf, play, sampleLines } from "./replay.ts";

const rollout = (name: string) => play({ rollout: sampleLines(`${name}.jsonl`) });

it("tells when a full window of the quota is free again, as a number", () => {
  expect(factsOf(rollout("rollout-token-count"), "quota")).toEqual([
    {
      fact: "quota",
      isRejected: true,
      resetsAtMs: 1_795_482_014_000,
      window: "5h",
      usedPct: 100,
    },
  ]);
});

it("shows windows that are not full, too, and waits only for the full one", () => {
  const run = rollout("rollout-usage-limit");
  expect(factsOf(run, "quota").map((q) => [q.window, q.usedPct, q.isRejected])).toEqual([
    ["5h", 61.5, false],
    ["7d", 42, false],
    ["5h", 100, true],
    ["7d", 42, false],
  ]);
  expect(run.state.quotaUntilMs).toBe(1_795_561_343_000);
});

it("tells tokens while the turn runs: the sum of the thread, which never falls", () => {
  const sums = factsOf(rollout("rollout-compaction"), "usage").map((f) => f.usage.inputTokens);
  expect(sums).toEqual([...sums].sort((a, b) => a - b));
  expect(sums[0]).toBe(9000);
  expect(sums.at(-1)).toBe(19_200);
});

it("tells of compaction once", () => {
  expect(factsOf(rollout("rollout-compaction"), "compacted")).toHaveLength(1);
});

it("takes a command that says such words for no refusal", () => {
  const output = "Chunk ID: 1\nOutput:\napproval policy is Never; reject command";
  const line = JSON.stringify({ type: "response_item", payload: { output } });
  expect(newCodexRolloutReader()(line)).toEqual([]);
});

it("names a window that has no length by its place, and a reason without a window by itself", () => {
  const limits = {
    limit_id: "codex_other",
    primary: { used_percent: 3, window_minutes: 90, resets_at: 7 },
    secondary: { used_percent: 4 },
    rate_limit_reached_type: "workspace_owner_credits_depleted",
  };
  const payload = { type: "token_count", info: null, rate_limits: limits };
  const line = JSON.stringify({ type: "event_msg", payload });
  expect(factsOf(play({ rollout: [line] }), "quota")).toMatchObject([
    { window: "codex_other 90min", resetsAtMs: 7000, isRejected: false },
    { window: "codex_other secondary", resetsAtMs: null, isRejected: false },
    { window: "workspace_owner_credits_depleted", resetsAtMs: null, isRejected: true },
  ]);
});

it("throws for no line", () => {
  fc.assert(
    fc.property(
      fc.oneof(fc.string(), fc.json()),
      fc.jsonValue({ maxDepth: 3 }),
      (text, payload) => {
        const read = newCodexRolloutReader();
        for (const type of ["event_msg", "compacted", "token_usage_record", "response_item"])
          read(JSON.stringify({ type, payload }));
        read(text);
      },
    ),
    { numRuns: 500 },
  );
});

const THREAD = "01a20f94-d36b-7dd2-9237-f58067572507";

function writeRollout(home: string, day: string, thread: string): string {
  const folder = join(home, "sessions", day);
  fs.mkdirSync(folder, { recursive: true });
  const path = join(folder, `rollout-2026-01-01T00-00-00-${thread}.jsonl`);
  fs.writeFileSync(path, "");
  return path;
}

it("finds the file of a thread among others, and the newest of two", () => {
  const home = tempDir();
  writeRollout(home, "2026/11/24", "01a20f94-0000-7000-8000-000000000000");
  writeRollout(home, "2025/12/31", THREAD);
  const newer = writeRollout(home, "2026/02/03", THREAD);
  fs.writeFileSync(join(home, "sessions", "README"), "");
  expect(findRollout(home, THREAD)).toBe(newer);
});

it("finds nothing where there is nothing, and for an empty id", () => {
  const home = tempDir();
  expect(findRollout(home, THREAD)).toBeUndefined();
  writeRollout(home, "2026/11/24", THREAD);
  expect(findRollout(home, "")).toBeUndefined();
  expect(findRollout(home, "01a20f94")).toBeUndefined();
});

it("looks through no more days than it may", () => {
  const home = tempDir();
  const path = writeRollout(home, "2026/11/01", THREAD);
  for (const day of ["2026/11/02", "2026/11/03"]) writeRollout(home, day, "other");
  expect(findRollout(home, THREAD, 3)).toBe(path);
  expect(findRollout(home, THREAD, 2)).toBeUndefined();
});
