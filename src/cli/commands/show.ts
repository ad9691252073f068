/** `show`: everything that the state tree knows about one task. */
import { ErrTaskNotFound } from "../../core/errors.ts";
import { parseObject } from "../../core/json-object.ts";
import { leaseOf } from "../../core/names.ts";
import type { StateTree } from "../../core/state-tree.ts";
import { judgeOwner, parseOwner } from "../../host/identity.ts";
import { lastRotated } from "../../journal/journal.ts";
import { batchBar, countsOf, countsText, readBatchProgress } from "../batch-bar.ts";
import { type Context, defineCommand } from "../command-spec.ts";
import { EXIT } from "../exit-codes.ts";
import { findRun, findTask, listRuns, lookInAnyCase, type TaskPlace } from "../find-task.ts";
import { existingTree } from "../options.ts";
import { ago, countText, cut, duration, paint, safe, table, widthOf, wrap } from "../render.ts";
import { countNames, findFiles, readJsonObject } from "../scan.ts";
import { describeTask } from "./ls.ts";

/** Events kept of a task that has very many: the latest. */
const EVENTS_MAX = 200;
/** Files of a run that are listed. */
const RUN_FILES_MAX = 100;
/** Of an output on a terminal. */
const OUTPUT_CELLS_MAX = 1000;
const MARGIN = 14;

export interface Knowledge {
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
    const id = ctx.positionals[0] ?? "";
    const known = await learn(tree, id);
    if (known === undefined) throw await explainUnknown(ctx, id);
    if (ctx.json) ctx.out.json(known);
    else for (const line of renderTask(known, ctx)) ctx.out.line(line);
    return EXIT.ok;
  },
});

async function explainUnknown(
  ctx: Pick<Context, "stateDir" | "env" | "cwd" | "out">,
  id: string,
): Promise<ErrTaskNotFound> {
  const { readPlan } = await import("../plan.ts");
  // A plan that cannot be read has no say here: whether there is such a task was the question.
  const plan = await readPlan(ctx).catch(() => undefined);
  const isNode = plan?.doc.nodes.some((node) => node.id === id) === true;
  return new ErrTaskNotFound(`no tray has a task ${JSON.stringify(id)}`, {
    id,
    phase: "show",
    hint: isNode
      ? `the plan has a node of this id, which was not launched yet: mailchute roadmap show ${id}`
      : "`mailchute ls` lists tasks",
  });
}

/** Undefined when neither a tray nor the journal knows it. */
async function learn(tree: StateTree, id: string): Promise<Knowledge | undefined> {
  const place = await findTask(tree, id);
  const events = await eventsOf(tree, id);
  if (place === undefined && events.length === 0) return undefined;
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
    state: (lookInAnyCase(tree, String(one)) as TaskPlace | undefined)?.state ?? "unknown",
  }));
}

/** The latest of its events; where the journal does not hold the first one, those before its last rotation, too. */
async function eventsOf(tree: StateTree, id: string): Promise<Record<string, unknown>[]> {
  const { JournalTail } = await import("../../journal/read.ts");
  const mark = JSON.stringify(id);
  const eventsIn = (path: string): Record<string, unknown>[] => {
    const events: Record<string, unknown>[] = [];
    const tail = new JournalTail(path);
    for (let lines = tail.nextLines(); lines.length > 0; lines = tail.nextLines()) {
      for (const line of lines) {
        const event = line.includes(mark) ? parseObject(line.replaceAll("\0", "")) : undefined;
        if (event?.["task_id"] === id) events.push(event);
      }
      if (events.length > EVENTS_MAX) events.splice(0, events.length - EVENTS_MAX);
    }
    tail.close();
    return events;
  };
  const events = eventsIn(tree.events);
  const hasFirst = events.some(({ event, attempt }) => event === "selected" && attempt === 1);
  const before = hasFirst ? undefined : lastRotated(tree.events);
  return before === undefined ? events : [...eventsIn(before), ...events].slice(-EVENTS_MAX);
}

/** What is known as lines: on a terminal wrapped, and nothing cut but a long output, which `logs` shows. */
export function renderTask(
  known: Knowledge,
  ctx: Pick<Context, "colour" | "columns" | "isTerminal">,
): string[] {
  const nowMs = Date.now();
  const lines: string[] = [];
  const columns = ctx.isTerminal ? ctx.columns : Number.POSITIVE_INFINITY;
  const say = (name: string, value: string | undefined): void => {
    if (value === undefined || value === "") return;
    const room = Math.max(20, columns - MARGIN);
    const [first, ...rest] = widthOf(value) <= room ? [value] : wrap(value, room);
    lines.push(`${paint(ctx.colour, "bold", name.padEnd(MARGIN))}${first}`);
    lines.push(...rest.map((line) => " ".repeat(MARGIN) + line));
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
  const output = text(record?.["output"]);
  const isLong = ctx.isTerminal && output !== undefined && widthOf(output) > OUTPUT_CELLS_MAX;
  say("output", isLong ? cut(output, OUTPUT_CELLS_MAX) : output);
  if (isLong) say("", `all of it: mailchute logs ${safe(known.id)}`);
  say("dropped as", text(record?.["dropped_as"]));
  say("content", text(record?.["excerpt"]));
  say("file", safe(known.path));
  say("run", known.run === null ? undefined : safe(known.run));
  if (known.run !== null) {
    // A program of a batch's line has a directory of its own, named by the line.
    const isOfLine = (name: string): boolean => /^\d+$/.test(name);
    for (const file of findFiles(known.run, (name) => !isOfLine(name), RUN_FILES_MAX).files)
      lines.push(`${" ".repeat(MARGIN)}${safe(file.name)} (${file.size} bytes)`);
    const { count, is_exact: isExact } = countNames(known.run, isOfLine);
    if (count > 0)
      lines.push(
        `${" ".repeat(MARGIN)}and ${countText(count, isExact)} of single lines: mailchute logs ${safe(known.id)}#LINE`,
      );
  }
  if (known.events.length > 0) lines.push("", ...eventLines(known.events, columns, ctx.colour));
  return lines;
}

/** A row for each; what it says of itself beside it, or below when there is no room. */
function eventLines(events: Knowledge["events"], width: number, colour: boolean): string[] {
  const rows = events.map((event) => [
    typeof event["t"] === "number"
      ? new Date(event["t"]).toISOString()
      : safe(event["timestamp"] ?? ""),
    safe(event["event"] ?? ""),
    safe(event["attempt"] ?? ""),
    safe(event["agent_id"] ?? ""),
  ]);
  const titles = [
    { title: "TIME" },
    { title: "EVENT" },
    { title: "RUN", align: "right" as const },
    { title: "AGENT" },
  ];
  const [head = "", ...lines] = table(titles, rows, Number.POSITIVE_INFINITY, colour);
  const column = Math.max(...lines.map(widthOf)) + 2;
  const shown = lines.flatMap((line, i) => {
    const event = events[i] ?? {};
    const text = safe(event["error"] ?? event["reason"] ?? event["message"] ?? "");
    if (text === "") return [line];
    if (column + widthOf(text) <= width) return [line + " ".repeat(column - widthOf(line)) + text];
    return [line, ...wrap(text, width - 4).map((part) => `    ${part}`)];
  });
  return [head, ...shown];
}
