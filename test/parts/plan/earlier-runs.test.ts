import fs from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { readEarlierRuns } from "../../../src/parts/plan/engine/earlier-runs.ts";
import { tempDir } from "../../support/temp-dir.ts";

const NOW_MS = 1_000_000_000;
const HALF_HOUR_MS = 30 * 60_000;
const OTHER_PID = process.pid + 1;

type Line = Record<string, unknown> & { event: string; t: number };

const at = (agoMs: number, event: string, more: object): Line => ({
  event,
  t: NOW_MS - agoMs,
  ...more,
});
const run = (id: string, submission = "s1") => ({ task_id: id, submission });
const ended = (id: string, status: string) => ({ ...run(id), status });

function read(lines: readonly Line[]) {
  const path = join(tempDir(), "events.jsonl");
  fs.writeFileSync(path, lines.map((line) => `${JSON.stringify(line)}\n`).join(""));
  return readEarlierRuns(path, NOW_MS, HALF_HOUR_MS);
}

describe("runs of earlier supervisors, in the journal", () => {
  it("are told by their first attempt and their end, the earliest first", () => {
    const { runs } = read([
      at(900, "started", run("b")),
      at(800, "started", run("a")),
      at(700, "started", run("b")),
      at(600, "completed", ended("a", "completed")),
      at(500, "completed", ended("b", "failed")),
      at(400, "started", run("still-runs")),
    ]);
    expect(runs).toEqual([
      { id: "b", isCompleted: false, startedAgoMs: 900, endedAgoMs: 500 },
      { id: "a", isCompleted: true, startedAgoMs: 800, endedAgoMs: 600 },
    ]);
  });

  it("count twice when a node ran twice, and not at all when they began too long ago", () => {
    const { runs } = read([
      at(HALF_HOUR_MS + 1, "started", run("old")),
      at(900, "completed", ended("old", "completed")),
      at(800, "started", run("a")),
      at(700, "completed", ended("a", "failed")),
      at(600, "started", run("a", "s2")),
      at(500, "completed", { ...run("a", "s2"), status: "completed" }),
    ]);
    expect(runs.map(({ id, isCompleted }) => [id, isCompleted])).toEqual([
      ["a", false],
      ["a", true],
    ]);
  });

  it.each([
    ["was killed", "supervisor_started", true],
    ["ended in order", "supervisor_stopped", false],
  ])("show that the last supervisor %s", (_what, last, wasKilled) => {
    const lines = [
      at(900, "supervisor_stopped", { pid: OTHER_PID }),
      at(800, "supervisor_started", { pid: OTHER_PID }),
      at(700, last, { pid: OTHER_PID }),
      at(600, "supervisor_started", { pid: process.pid }),
    ];
    expect(read(lines).wasKilled).toBe(wasKilled);
  });

  it("are none without a journal", () => {
    const path = join(tempDir(), "none.jsonl");
    expect(readEarlierRuns(path, NOW_MS, HALF_HOUR_MS).runs).toEqual([]);
  });
});
