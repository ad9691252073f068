/** The journal lines of a settled task are written once, although processes die between two of them. */
import fs from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { systemClock } from "../../src/host/system-clock.ts";
import { recordSettled, type SettledDetails } from "../../src/journal/attempts.ts";
import { Telemetry } from "../../src/journal/telemetry.ts";
import { tempDir } from "../support/temp-dir.ts";

const SUBJECT = { task_id: "a", agent_id: "x", attempt: 2, lease: "s.2.owner-1" };
const FAILURE = { isCompleted: false, acquiredAtMs: 0, pid: 1, durationMs: null, error: "no" };
const SKIP = { cause: "b", root: "b", depth: 1, chain: ["b"] };
const BATCH = { lines: 3, completed: 2, failures: 1, bad: 0 };

test.each<[string, SettledDetails]>([
  ["cancelled", { ...FAILURE, kind: "cancelled" }],
  ["failed", { ...FAILURE, kind: "exit" }],
  ["skipped", { ...FAILURE, kind: "dependency_failed", skip: SKIP }],
  ["skipped", { ...FAILURE, kind: "duplicate_key", of: "b" }],
  ["lines_failed", { ...FAILURE, isCompleted: true, kind: null, error: null, batch: BATCH }],
])("%s is there once when its writer died before the line that follows", (event, details) => {
  const dir = tempDir();
  const paths = { events: join(dir, "events.jsonl"), leases: join(dir, "leases.jsonl") };
  const write = (mayBeRecorded: boolean): void => {
    const telemetry = new Telemetry(paths, "w", 60_000, systemClock);
    recordSettled(telemetry, SUBJECT, details, mayBeRecorded);
    telemetry.close();
  };
  const eventsNow = (): unknown[] =>
    fs
      .readFileSync(paths.events, "utf8")
      .trimEnd()
      .split("\n")
      .map((line) => (JSON.parse(line) as { event: string }).event);
  write(false);
  expect(eventsNow()).toEqual([event, "completed"]);
  const first = fs.readFileSync(paths.events, "utf8").split("\n")[0];
  fs.writeFileSync(paths.events, `${first}\n`);
  write(true);
  expect(eventsNow()).toEqual([event, "completed"]);
  write(true);
  expect(eventsNow()).toEqual([event, "completed"]);
});
