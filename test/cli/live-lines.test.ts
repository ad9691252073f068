/** Lines about what happens in a pool: from the end of a journal on, and no more than a person can read. */
import fs from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { LiveLines } from "../../src/cli/text/live-lines.ts";
import { tempDir } from "../support/temp-dir.ts";

const event = (name: string, id: string, more: object = {}): string =>
  `${JSON.stringify({ event: name, task_id: id, attempt: 1, ...more })}\n`;

it("tells what comes after its start, and leaves failures to those who tell them", () => {
  const path = join(tempDir(), "events.jsonl");
  fs.writeFileSync(path, event("started", "before"));
  const told: string[] = [];
  const live = new LiveLines(path, (line) => told.push(line));
  fs.appendFileSync(
    path,
    event("selected", "a") +
      event("started", "a", { attempt: 2 }) +
      event("completed", "a", { status: "completed", duration_ms: 1500 }) +
      event("completed", "b", { status: "failed", duration_ms: 10 }) +
      event("released", "c\u001b[2J", { error: "the program asks to be run later (exit 75)" }) +
      "torn",
  );
  live.close();
  expect(told).toEqual([
    "a started, run 2",
    "a completed after 1.5 s",
    "c\\x1b[2J was given back and waits again: the program asks to be run later (exit 75)",
  ]);
});

it("tells twenty at once and sums up the rest", () => {
  const path = join(tempDir(), "events.jsonl");
  const told: string[] = [];
  const live = new LiveLines(path, (line) => told.push(line));
  for (let n = 0; n < 100; n++)
    fs.appendFileSync(
      path,
      event("started", `t-${n}`) +
        event("completed", `t-${n}`, { status: n < 50 ? "completed" : "failed" }),
    );
  live.close();
  expect(told).toHaveLength(21);
  expect(told.at(-1)).toBe("and 90 started, 40 completed");
});
