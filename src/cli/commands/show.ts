/** `show`: everything that the state tree knows about one task. */
import fs from "node:fs";
import { join } from "node:path";
import { ErrTaskNotFound } from "../../core/errors.ts";
import { leaseOf } from "../../core/names.ts";
import type { StateTree } from "../../core/state-tree.ts";
import { judgeOwner, parseOwner } from "../../host/identity.ts";
import { batchBar, countsOf, countsText, readBatchProgress } from "../batch-bar.ts";
import { type Context, defineCommand } from "../command-spec.ts";
import { EXIT } from "../exit-codes.ts";
import { findRun, findTask, listRuns, lookForTask, type TaskPlace } from "../find-task.ts";
import { existingTree } from "../options.ts";
import { ago, cut, duration, paint, safe, table } from "../render.ts";
import { findFiles, readJsonObject } from "../scan.ts";
import { describeTask } from "./ls.ts";

/** Events kept of a task that has very many: the latest. */
const EVENTS_MAX = 200;

interface Knowledge {
  id: string;
  state: string;
  path: string;
  attempt: number | null;
  lease: string | null;
  owner: { pid: number | null; verdict: string } | null;
  task: Record<string, unknown> | null;
  record: Record<string, unknown> | null;
  run: string | null;
  runs: string[];
  /** Ids in metadata.dependencies and how they stand. */
  dependencies: { id: string; state: string }[];
  events: Record<string, unknown>[];
  /** Of a batch: how far it has come, or what its lines came to. */
  batch: string | null;
}

export const command = defineCommand({
  usage: "ID",
  args: { min: 1, max: 1 },
  options: {},
  async run(ctx) {
    const tree = existingTree(ctx);
    const known = await learn(tree, ctx.positionals[0] ?? "");
    if (ctx.json) ctx.out.json(known);
    else for (const line of render(known, ctx)) ctx.out.line(line);
    return EXIT.ok;
  },
});

async function learn(tree: StateTree, id: string): Promise<Knowledge> {
  const place = await findTask(tree, id);
  const events = await eventsOf(tree, id);
  if (place === undefined && events.length === 0) {
    throw new ErrTaskNotFound(`no tray has a task ${JSON.stringify(id)}`, {
      id,
      phase: "show",
      hint: "`mailchute ls` lists tasks",
    });
  }
  const isRecord = place?.state === "done" || place?.state === "failed";
  const content = place === undefined ? undefined : readJsonObject(place.path);
  const record = isRecord ? content : undefined;
  const task = (isRecord ? content?.["task"] : content) as Record<string, unknown> | undefined;
  const owner = place?.name?.stage === "w" ? place.name.token : undefined;
  const { task: _inside, ...bare } = record ?? {};
  const run = findRun(tree, id, place, record);
  return {
    id,
    state: place?.state ?? "gone",
    path: place?.path ?? "",
    attempt:
      place?.name?.attempt ??
      (typeof record?.["attempts"] === "number" ? record["attempts"] : null),
    lease: place?.name === undefined ? null : leaseOf(place.name),
    owner:
      owner === undefined
        ? null
        : { pid: parseOwner(owner)?.pid ?? null, verdict: judgeOwner(owner) },
    task: task ?? null,
    record: record === undefined ? null : bare,
    run: run ?? null,
    runs: listRuns(tree, id),
    dependencies: dependenciesOf(tree, task),
    events,
    batch: batchText(place, record, run) ?? null,
  };
}

function batchText(
  place: TaskPlace | undefined,
  record: Record<string, unknown> | undefined,
  run: string | undefined,
): string | undefined {
  const counts = countsOf(record);
  if (counts !== undefined) return `batch, ${countsText(counts)}`;
  if (place?.path.endsWith(".ndjson") !== true) return undefined;
  const progress = run === undefined ? undefined : readBatchProgress(run);
  return progress === undefined ? "batch" : `batch ${batchBar(progress)}`;
}

function dependenciesOf(
  tree: StateTree,
  task: Record<string, unknown> | undefined,
): Knowledge["dependencies"] {
  const ids = (task?.["metadata"] as { dependencies?: unknown } | undefined)?.dependencies;
  if (!Array.isArray(ids)) return [];
  return ids.map((one) => ({
    id: String(one),
    state: (lookForTask(tree, String(one)) as TaskPlace | undefined)?.state ?? "unknown",
  }));
}

async function eventsOf(tree: StateTree, id: string): Promise<Record<string, unknown>[]> {
  const { readJournal } = await import("../../journal/read.ts");
  const events: Record<string, unknown>[] = [];
  for await (const event of readJournal(tree.events)) {
    if (event["task_id"] !== id) continue;
    events.push(event);
    if (events.length > EVENTS_MAX) events.shift();
  }
  return events;
}

function render(known: Knowledge, ctx: Context): string[] {
  const nowMs = Date.now();
  const lines: string[] = [];
  const say = (name: string, value: string | undefined): void => {
    if (value === undefined || value === "") return;
    const room = ctx.isTerminal ? Math.max(20, ctx.columns - 14) : Number.POSITIVE_INFINITY;
    lines.push(`${paint(ctx.colour, "bold", name.padEnd(14))}${cut(value, room)}`);
  };
  const { task, record } = known;
  const text = (value: unknown): string | undefined =>
    value === undefined || value === null || value === "" ? undefined : safe(value);
  say("id", safe(known.id));
  say(
    "state",
    known.state === "gone"
      ? "gone: no tray has it any more, only its events are left"
      : known.state,
  );
  say("what", known.batch === null ? safe(describeTask(task ?? undefined)) : known.batch);
  say("priority", text(task?.["priority"]));
  say("attempt", known.attempt === null ? undefined : String(known.attempt));
  if (known.owner !== null) say("worker", `pid ${known.owner.pid ?? "?"}, ${known.owner.verdict}`);
  const created = task?.["created_at"];
  if (typeof created === "number") say("created", ago(created * 1000, nowMs));
  const due = task?.["not_before"];
  if (typeof due === "number" && due * 1000 > nowMs) say("not before", ago(due * 1000, nowMs));
  for (const one of known.dependencies) say("after", `${safe(one.id)} (${one.state})`);
  say("verdict", text(record?.["verdict"]));
  say("reason", text(record?.["verdict_reason"]));
  if (typeof record?.["duration_ms"] === "number") say("took", duration(record["duration_ms"]));
  if (record?.["error"] !== undefined)
    say("error", `${safe(record["code"] ?? "")}: ${safe(record["error"])}`);
  say("exit code", text(record?.["exit_code"]));
  say("signal", text(record?.["signal"]));
  say("output", text(record?.["output"]));
  say("dropped as", text(record?.["dropped_as"]));
  say("content", text(record?.["excerpt"]));
  say("file", safe(known.path));
  say("run", known.run === null ? undefined : safe(known.run));
  if (known.run !== null) {
    for (const file of findFiles(known.run, () => true, 100).files) {
      const size = fs.statSync(join(known.run, file.name), { throwIfNoEntry: false })?.size ?? 0;
      lines.push(`${" ".repeat(14)}${safe(file.name)} (${size} bytes)`);
    }
  }
  if (known.events.length > 0) {
    lines.push("");
    const rows = known.events.map((event) => [
      typeof event["t"] === "number"
        ? new Date(event["t"]).toISOString()
        : safe(event["timestamp"] ?? ""),
      safe(event["event"] ?? ""),
      safe(event["attempt"] ?? ""),
      safe(event["agent_id"] ?? ""),
      safe(event["error"] ?? event["reason"] ?? event["message"] ?? ""),
    ]);
    const columns = [
      { title: "TIME" },
      { title: "EVENT" },
      { title: "RUN", align: "right" as const },
      { title: "AGENT", min: 8 },
      { title: "", min: 4 },
    ];
    lines.push(...table(columns, rows, ctx.columns, ctx.colour));
  }
  return lines;
}
