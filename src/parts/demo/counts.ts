/** The final check of the demo: compares each expected count with the files. Only reads. */
import { join } from "node:path";
import type { StateTree } from "../../core/state-tree.ts";
import { readJsonObject } from "../../view/scan.ts";
import { EXPECTED } from "./acts.ts";
import { readNames } from "./stage.ts";

export interface Count {
  name: string;
  expected: number;
  found: number;
}

type JsonObject = Record<string, unknown>;

const LIFECYCLE = ["selected", "assigned", "started", "completed"] as const;

/** @param events all lifecycle events; @param leases all lease records */
export function countAll(
  tree: StateTree,
  events: readonly JsonObject[],
  leases: readonly JsonObject[],
): Count[] {
  const done = recordsIn(tree, "outbox", "_result.json");
  const errors = recordsIn(tree, "failed", "_error.json");
  const records = new Map([...errors, ...done]);
  const isRefused = (id: string): boolean => errors.get(id)?.["kind"] === "invalid";
  const failed = [...errors.keys()].filter((id) => !isRefused(id));
  const refused = [...errors.keys()].filter(isRefused);
  const named = (name: string): JsonObject[] => events.filter(({ event }) => event === name);
  const settled = [...EXPECTED.completed, ...EXPECTED.failed];
  const retried = Object.entries(EXPECTED.attempts);
  const ranTwice = retried.filter(([id, n]) => records.get(id)?.["attempts"] === n);
  const ends = named("completed").map((event) => event["task_id"]);
  const twice = new Set(ends.filter((id, at) => ends.indexOf(id) !== at));
  const inBoth = [...done.keys()].filter((id) => errors.has(id));
  const left = ["inbox", "processing"].flatMap((tray) => readNames(join(tree.mailbox, tray)));
  const rows: [name: string, expected: number, found: number][] = [
    ["results in outbox/", ...matching([...done.keys()], EXPECTED.completed)],
    ["failed for good", ...matching(failed, EXPECTED.failed)],
    ["bad files refused", ...matching(refused, EXPECTED.refused)],
    ["tasks that ran twice", retried.length, ranTwice.length],
    ["retries with backoff", EXPECTED.retries, named("retry_scheduled").length],
    ["tasks taken back from a killed worker", EXPECTED.reclaimed, named("reclaimed").length],
    [
      "tasks with selected, assigned, started, completed",
      settled.length,
      settled.filter((id) => hasLifecycle(events, id)).length,
    ],
    ["leases that were never given up", 0, openLeases(leases)],
    ["settled twice, or in both trays", 0, twice.size + inBoth.length],
    ["left in inbox/ and processing/", 0, left.length],
  ];
  return rows.map(([name, expected, found]) => ({ name, expected, found }));
}

/** Wrong ids make the two numbers differ, even if as many ids were found as expected. @returns the expected and the found count */
function matching(found: readonly string[], wanted: readonly string[]): [number, number] {
  const missing = wanted.filter((id) => !found.includes(id)).length;
  const extra = found.filter((id) => !wanted.includes(id)).length;
  return [wanted.length, missing === extra ? wanted.length - missing : found.length];
}

/** The records of a tray by id. A record that cannot be read is an empty object. */
function recordsIn(tree: StateTree, tray: string, ending: string): Map<string, JsonObject> {
  const dir = join(tree.mailbox, tray);
  const names = readNames(dir).filter((name) => name.endsWith(ending));
  return new Map(
    names.map((name) => [name.slice(0, -ending.length), readJsonObject(join(dir, name)) ?? {}]),
  );
}

/** True if a task has the four events of every finished task, in this order. */
function hasLifecycle(events: readonly JsonObject[], id: string): boolean {
  const own = events.filter((event) => event["task_id"] === id).map((event) => event["event"]);
  let at = -1;
  return LIFECYCLE.every((name) => {
    at = own.indexOf(name, at + 1);
    return at !== -1;
  });
}

function openLeases(leases: readonly JsonObject[]): number {
  const open = new Set<unknown>();
  for (const { lease, status } of leases) {
    if (status === "active") open.add(lease);
    else open.delete(lease);
  }
  return open.size;
}
