/** Writes the evidence of a node, which tells people and `jq` what happened to it. Failed nodes get evidence, too. */
import fs from "node:fs";
import { join } from "node:path";
import type { LifecycleEvent } from "../../../core/events.ts";
import { isObject } from "../../../core/json-object.ts";
import { parseLease } from "../../../core/names.ts";
import type { NodeStatus, RoadmapNode } from "../../../core/roadmap.ts";
import type { ErrorRecord, ResultRecord } from "../../../core/task.ts";
import { readDocument } from "../../../host/documents.ts";
import { makeDirs } from "../../../host/make-dirs.ts";
import { replaceText } from "../../../host/replace-document.ts";
import { keepEarlier } from "./phase-log.ts";

export interface EvidenceFacts {
  node: RoadmapNode;
  /** The node's new status in the plan. */
  status: NodeStatus;
  record: ResultRecord | ErrorRecord;
  events: readonly LifecycleEvent[];
  /** The folder `runs/`, for links. */
  runsDir: string;
  /** Why the status in the plan differs from the record; left out if it does not. */
  error?: string;
}

const TEXT_CHARS_MAX = 4000;
const RUN_FILES = ["packet.md", "stdout.log", "stderr.log", "verify.log", "result.json"];
const MILESTONES = ["selected", "assigned", "started", "completed"] as const;

/**
 * @param dir `evidence/`; the files of a node are in `<dir>/<id>/`
 * @param isDurable true: the files survive a power cut once this returns
 */
export function writeEvidence(dir: string, facts: EvidenceFacts, isDurable: boolean): void {
  const bundle = join(dir, facts.node.id);
  makeDirs(bundle, 2);
  keepEarlierRun(bundle, readEvidence(dir, facts.node.id).lease, facts.record.lease);
  const options = { stagingDir: join(dir, ".tmp"), isDurable };
  const lifecycle = `${JSON.stringify(lifecycleOf(facts), null, 2)}\n`;
  replaceText(join(bundle, "lifecycle.json"), lifecycle, options);
  replaceText(join(bundle, "summary.md"), summaryOf(facts, artefacts(bundle)), options);
}

/** Moves the documents of an earlier run to `earlier/<submission>/`. The launch has moved the record of that run to the same folder. */
function keepEarlierRun(bundle: string, before: unknown, lease: string): void {
  const submission = typeof before === "string" ? parseLease(before)?.submission : undefined;
  if (submission === undefined || submission === parseLease(lease)?.submission) return;
  // The document that names the run is moved last: if this process dies before that, the next one moves the rest.
  keepEarlier(bundle, submission, ["summary.md", "lifecycle.json"]);
}

/** What the newest evidence of a node says: its status, the lease of the run, and the events. Nothing without evidence. */
export function readEvidence(
  dir: string,
  id: string,
): { status?: unknown; lease?: unknown; events: LifecycleEvent[] } {
  const { events, ...said } =
    readDocument<Record<string, unknown>>(join(dir, id, "lifecycle.json")) ?? {};
  const list = Array.isArray(events) ? events.filter(isObject) : [];
  return { ...said, events: list as unknown as LifecycleEvent[] };
}

function lifecycleOf({ node, status, record, events, error }: EvidenceFacts): object {
  const last = (name: string): string | null =>
    events.findLast((event) => event.event === name)?.timestamp ?? null;
  return {
    task_id: node.id,
    title: node.title,
    type: node.type,
    status,
    ended: record.status,
    ...(error === undefined ? {} : { error }),
    attempts: record.attempts,
    agent_id: record.agent_id,
    lease: record.lease,
    run: record.run,
    ...Object.fromEntries(MILESTONES.map((name) => [name, last(name)])),
    events,
  };
}

function summaryOf(facts: EvidenceFacts, files: readonly string[]): string {
  const { node, status, record, events, runsDir } = facts;
  const lines = [`# ${oneLine(node.title)}`, ""];
  const add = (name: string, value: string | number | null | undefined): void => {
    if (value !== undefined && value !== null && value !== "")
      lines.push(`- ${name}: ${oneLine(String(value))}`);
  };
  add("node", node.id);
  add("status", status);
  add("agent", record.agent_id);
  add("attempts", record.attempts);
  for (const name of MILESTONES)
    add(name, events.findLast((event) => event.event === name)?.timestamp);
  if (record.status === "completed") add("duration", `${record.duration_ms} ms`);
  add("exit code", record.exit_code);
  const said = record.status === "completed" ? record.output : record["output" as never];
  const envelope = isObject(said) ? said : {};
  section(lines, "What it said", textOf(envelope["summary"]) ?? textOf(said));
  const faults = record.status === "failed" ? [`${record.kind}: ${record.error}`] : [];
  if (facts.error !== undefined) faults.push(facts.error);
  section(lines, "What went wrong", faults.join("\n"));
  list(lines, "Errors", envelope["errors"]);
  list(lines, "Files changed", envelope["filesChanged"]);
  list(lines, "Commands run", envelope["commandsRun"]);
  list(lines, "Acceptance", node.acceptance);
  list(lines, "Artefacts", files);
  const run = record.run === null ? undefined : join(runsDir, record.run);
  const paths = run === undefined ? [] : RUN_FILES.map((file) => join(run, file));
  const there = paths.filter((path) => fs.existsSync(path));
  list(lines, "Run", there);
  return `${lines.join("\n")}\n`;
}

function section(lines: string[], title: string, text: string | undefined): void {
  if (text === undefined || text.trim() === "") return;
  const shown = text.length > TEXT_CHARS_MAX ? `…${text.slice(-TEXT_CHARS_MAX)}` : text;
  // The text is indented, so that nothing in it can end the block.
  lines.push("", `## ${title}`, "", `    ${shown.trimEnd().replaceAll("\n", "\n    ")}`);
}

function list(lines: string[], title: string, items: unknown): void {
  if (!Array.isArray(items) || items.length === 0) return;
  lines.push("", `## ${title}`, "");
  for (const item of items)
    lines.push(`- ${oneLine(typeof item === "string" ? item : JSON.stringify(item))}`);
}

function artefacts(bundle: string): string[] {
  return fs
    .readdirSync(bundle)
    .filter((name) => name.endsWith(".md") && name !== "summary.md")
    .sort();
}

function oneLine(text: string): string {
  return text.replaceAll(/\s+/g, " ").trim();
}

function textOf(value: unknown): string | undefined {
  return typeof value === "string" ? value : undefined;
}
