/** What the demo asserts at its end: each count with what was expected and what the files say. Reads only. */
import { join } from "node:path";
import type { StateTree } from "../../core/state-tree.ts";
import { readJsonObject } from "../../view/scan.ts";
import { readNames } from "./stage.ts";
import { EXPECTED } from "./tasks.ts";

export interface Count {
  name: string;
  expected: number;
  found: number;
}

const LIFECYCLE = ["selected", "assigned", "started", "completed"] as const;

/** @param events all lifecycle events; @param leases all lease records */
export function countAll(
  tree: StateTree,
  events: readonly Record<string, unknown>[],
  leases: readonly Record<string, unknown>[],
): Count[] {
  const done = idsIn(tree, "outbox", "_result.json");
  const failed = idsIn(tree, "failed", "_error.json");
  const errors = failed.map((id) => ({ id, kind: record(tree, id)?.["kind"] }));
  const settled = [...EXPECTED.completed, ...EXPECTED.failed];
  const retried = Object.entries(EXPECTED.attempts);
  return [
    count("results in outbox/", EXPECTED.completed.length, matching(done, EXPECTED.completed)),
    count(
      "failed for good",
      EXPECTED.failed.length,
      matching(
        ids(errors, (kind) => kind !== "invalid"),
        EXPECTED.failed,
      ),
    ),
    count(
      "bad files refused",
      EXPECTED.refused.length,
      matching(
        ids(errors, (kind) => kind === "invalid"),
        EXPECTED.refused,
      ),
    ),
    count(
      "tasks that ran twice",
      retried.length,
      retried.filter(([id, n]) => record(tree, id)?.["attempts"] === n).length,
    ),
    count("retries with backoff", EXPECTED.retries, named(events, "retry_scheduled")),
    count("tasks taken back from a killed worker", EXPECTED.reclaimed, named(events, "reclaimed")),
    count(
      "tasks with selected, assigned, started, completed",
      settled.length,
      settled.filter((id) => hasLifecycle(events, id)).length,
    ),
    count("leases that were never given up", 0, openLeases(leases)),
    count("settled twice, or in both trays", 0, twice(events, done, failed)),
    count("left in inbox/ and processing/", 0, left(tree)),
  ];
}

function count(name: string, expected: number, found: number): Count {
  return { name, expected, found };
}

/** How many there are when they are the right ones; a wrong one counts too, so that the number cannot be right by chance. */
function matching(found: readonly string[], wanted: readonly string[]): number {
  const missing = wanted.filter((id) => !found.includes(id)).length;
  const extra = found.filter((id) => !wanted.includes(id)).length;
  return missing === extra ? wanted.length - missing : found.length;
}

function ids(
  errors: readonly { id: string; kind: unknown }[],
  isWanted: (kind: unknown) => boolean,
): string[] {
  return errors.filter((error) => isWanted(error.kind)).map((error) => error.id);
}

function idsIn(tree: StateTree, tray: string, ending: string): string[] {
  return readNames(join(tree.mailbox, tray))
    .filter((name) => name.endsWith(ending))
    .map((name) => name.slice(0, -ending.length));
}

function record(tree: StateTree, id: string): Record<string, unknown> | undefined {
  return (
    readJsonObject(join(tree.mailbox, "outbox", `${id}_result.json`)) ??
    readJsonObject(join(tree.mailbox, "failed", `${id}_error.json`))
  );
}

function named(events: readonly Record<string, unknown>[], name: string): number {
  return events.filter((event) => event["event"] === name).length;
}

/** The four that every finished task has, in this order. */
function hasLifecycle(events: readonly Record<string, unknown>[], id: string): boolean {
  const own = events.filter((event) => event["task_id"] === id).map((event) => event["event"]);
  let at = -1;
  return LIFECYCLE.every((name) => {
    at = own.indexOf(name, at + 1);
    return at !== -1;
  });
}

function openLeases(leases: readonly Record<string, unknown>[]): number {
  const open = new Set<unknown>();
  for (const { lease, status } of leases) {
    if (status === "active") open.add(lease);
    else open.delete(lease);
  }
  return open.size;
}

function twice(
  events: readonly Record<string, unknown>[],
  done: readonly string[],
  failed: readonly string[],
): number {
  const ends = new Map<unknown, number>();
  for (const event of events) {
    if (event["event"] === "completed")
      ends.set(event["task_id"], (ends.get(event["task_id"]) ?? 0) + 1);
  }
  const both = done.filter((id) => failed.includes(id)).length;
  return both + [...ends.values()].filter((n) => n > 1).length;
}

function left(tree: StateTree): number {
  return ["inbox", "processing"].reduce(
    (sum, tray) => sum + readNames(join(tree.mailbox, tray)).length,
    0,
  );
}
