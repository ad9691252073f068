/** What happened to a node: also what was written before anybody asked, and for all who ask at once. */
import fs from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { NodeEvents } from "../../../src/parts/plan/engine/node-events.ts";
import { tempDir } from "../../support/temp-dir.ts";

function line(event: string, id: string, seq: number): string {
  return `${JSON.stringify({ event, task_id: id, agent_id: "x", t: seq, worker: "w", seq })}\n`;
}

const NAMES = ["selected", "assigned", "started", "completed"];

it("whoever asks while the journal is being read waits for all of it", async () => {
  const path = join(tempDir(), "events.jsonl");
  const others = Array.from({ length: 20_000 }, (_, n) => line("started", `other-${n}`, n));
  fs.writeFileSync(path, [...others, ...NAMES.map((name, n) => line(name, "a", n))].join(""));
  const events = new NodeEvents();
  events.trackBegun("a");
  const first = events.load(path);
  // Its last line is the first to come, by another way.
  events.addLine(line("completed", "a", 3).trimEnd());
  await events.load(path);
  expect(events.of("a").map((event) => event.event)).toEqual(NAMES);
  await first;
});

it("a node that is begun elsewhere later has the journal read again", async () => {
  const path = join(tempDir(), "events.jsonl");
  fs.writeFileSync(path, line("selected", "a", 1) + line("selected", "b", 2));
  const events = new NodeEvents();
  events.trackBegun("a");
  await events.load(path);
  events.trackBegun("b");
  expect(events.isAsked).toBe(false);
  await events.load(path);
  expect(["a", "b"].map((id) => events.of(id).length)).toEqual([1, 1]);
});
