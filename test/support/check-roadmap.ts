/**
 * Compares everything that a state tree says about a plan that has run to its end: statuses, records, events, leases,
 * evidence, kv. Knows the formats, not the code that wrote them.
 */
import fs from "node:fs";
import { join } from "node:path";
import { parse } from "yaml";
import { readPlan } from "./read-plan.ts";

interface Item {
  id: string;
  status?: string;
  type?: string;
  dependencies?: (string | { id: string; required_status?: string })[];
}

interface Line {
  event?: string;
  status?: string;
  task_id: string;
  lease: string;
  owner: string;
  attempt: number;
  t: number;
}

/** What is wrong, one sentence each; empty when all agree. */
export function checkFinishedRoadmap(state: string): string[] {
  const problems: string[] = [];
  const plan = parse(readPlan(join(state, "roadmap.yaml"))) as { nodes: Item[] };
  const events = linesOf(join(state, "analytics", "supervisor_lifecycle.jsonl"));
  const leases = linesOf(join(state, "supervisor_leases.jsonl"));
  const eventsOf = groupById(events);
  const leasesOf = groupById(leases);
  const completedAt = new Map<string, number>();
  for (const { id } of plan.nodes) {
    const done = (eventsOf.get(id) ?? []).filter((e) => e.event === "completed");
    if (done[0] !== undefined) completedAt.set(id, done[0].t);
  }
  for (const item of plan.nodes) {
    const say = (what: string): void => void problems.push(`${item.id}: ${what}`);
    const own = eventsOf.get(item.id) ?? [];
    if (item.status !== "done") say(`its status is ${String(item.status)}`);
    const record = json(join(state, "mailbox", "outbox", `${item.id}_result.json`));
    if (record === undefined) say("it has no result");
    if (fs.existsSync(join(state, "mailbox", "failed", `${item.id}_error.json`)))
      say("it has an error record");
    const lease = record?.["lease"];
    checkEvents(own, lease, say);
    checkOrder(item, own, completedAt, say);
    checkLeases(leasesOf.get(item.id) ?? [], lease, say);
    checkEvidence(state, item.id, record, say);
    checkKv(state, item.id, record, say);
  }
  for (const tray of ["inbox", "processing"])
    for (const file of fs.readdirSync(join(state, "mailbox", tray)))
      if (file.endsWith(".json")) problems.push(`${tray}/${file} is left over`);
  return problems;
}

type Say = (what: string) => void;

/** A record has in one what a line has in two. */
function leaseOfLine({ lease, owner }: Line): string {
  return `${lease}.${owner}`;
}

function checkEvents(own: readonly Line[], lease: unknown, say: Say): void {
  const completed = own.filter((e) => e.event === "completed");
  if (completed.length !== 1) say(`it has ${completed.length} events completed`);
  if (completed[0] !== undefined && leaseOfLine(completed[0]) !== lease)
    say("its event completed is of another lease than its result");
  const last = own.filter((e) => leaseOfLine(e) === lease).toSorted((a, b) => a.t - b.t);
  const at = (event: string): number => last.findIndex((e) => e.event === event);
  if (!own.some((e) => e.event === "selected")) say("it was never selected");
  for (const event of ["assigned", "started"])
    if (at(event) === -1) say(`its last run has no event ${event}`);
  if (at("started") > at("completed")) say("it completed before it started");
}

function checkOrder(
  item: Item,
  own: readonly Line[],
  completedAt: ReadonlyMap<string, number>,
  say: Say,
): void {
  const started = Math.min(...own.filter((e) => e.event === "started").map((e) => e.t));
  for (const dependency of item.dependencies ?? []) {
    const on = typeof dependency === "string" ? dependency : dependency.id;
    const then = completedAt.get(on);
    if (then === undefined || then > started) say(`it started before ${on} was done`);
  }
}

function checkLeases(own: readonly Line[], lease: unknown, say: Say): void {
  // Recovery puts a task back before it writes that the old lease has expired, and the next run may end in between.
  const isLate = (line: Line): boolean => line.status === "expired" && leaseOfLine(line) !== lease;
  const last = own
    .filter((line) => !isLate(line))
    .toSorted((a, b) => a.t - b.t)
    .at(-1);
  if (last === undefined) say("it has no lease records");
  else if (last.status !== "released" || leaseOfLine(last) !== lease)
    say(`its last lease record is ${String(last.status)} of ${leaseOfLine(last)}`);
  if (own.filter((l) => l.status === "released").length !== 1)
    say("it was not released exactly once");
}

function checkEvidence(
  state: string,
  id: string,
  record: Record<string, unknown> | undefined,
  say: Say,
): void {
  const bundle = json(join(state, "evidence", id, "lifecycle.json"));
  if (bundle === undefined) {
    say("it has no evidence");
    return;
  }
  if (bundle["status"] !== "done") say(`its evidence says ${String(bundle["status"])}`);
  if (bundle["lease"] !== record?.["lease"]) say("its evidence is of another run than its result");
  const events = (bundle["events"] as Line[]).map((e) => e.event);
  for (const event of ["selected", "assigned", "started", "completed"])
    if (!events.includes(event)) say(`its evidence lacks the event ${event}`);
  if (!fs.existsSync(join(state, "evidence", id, "summary.md"))) say("it has no summary.md");
}

function checkKv(
  state: string,
  id: string,
  record: Record<string, unknown> | undefined,
  say: Say,
): void {
  const kv = json(join(state, "kv", `${id}.json`));
  const value = (key: string): unknown => (kv?.[key] as { value?: unknown } | undefined)?.value;
  const summary = (record?.["output"] as { summary?: unknown } | undefined)?.summary;
  if (value("out.summary") !== summary)
    say(`kv says ${JSON.stringify(value("out.summary"))}, its result ${JSON.stringify(summary)}`);
  for (const [key, file] of [
    ["out.last_stdout_path", "stdout.log"],
    ["out.last_result_path", "result.json"],
  ] as const)
    if (!String(value(key)).endsWith(join("runs", String(record?.["run"]), file)))
      say(`${key} is ${String(value(key))}`);
  if (value("err.summary") !== undefined) say("kv still has an err.summary");
}

function groupById(lines: readonly Line[]): Map<string, Line[]> {
  const groups = new Map<string, Line[]>();
  for (const line of lines) {
    const group = groups.get(line.task_id);
    if (group === undefined) groups.set(line.task_id, [line]);
    else group.push(line);
  }
  return groups;
}

/** Whole lines only: a killed writer may leave half of one. Where nothing ran there is no journal. */
function linesOf(path: string): Line[] {
  if (!fs.existsSync(path)) return [];
  return fs
    .readFileSync(path, "utf8")
    .split("\n")
    .flatMap((line) => {
      try {
        return [JSON.parse(line) as Line];
      } catch {
        return [];
      }
    });
}

function json(path: string): Record<string, unknown> | undefined {
  try {
    return JSON.parse(fs.readFileSync(path, "utf8")) as Record<string, unknown>;
  } catch {
    return undefined;
  }
}
