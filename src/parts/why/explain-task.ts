/** Says why a task is in its state, since when, and what would move it. Pure. */
import { headlineOf } from "../../core/outcome.ts";
import { mendNodes } from "../../core/roadmap.ts";
import type { Knowledge } from "../../view/know-task.ts";
import { textOf } from "../../view/scan.ts";
import type { Snapshot } from "../../view/snapshot.ts";
import { maxAttemptsIn } from "../../view/task-rows.ts";
import type { Why } from "../../view/why-open.ts";

export interface Explanation {
  id: string;
  state: string;
  /** A phrase that follows the id: "waits for a, which failed". */
  why: string;
  /** True when the task does not go on by itself. */
  is_stuck: boolean;
  /** When it came into this state (epoch ms); null when that left no trace. */
  since_ms: number | null;
  /** What a person can do; null when nothing needs to be done. */
  do: string | null;
  /** Names and values of the facts that matter for its state. */
  facts: { name: string; text: string }[];
}

interface Sources {
  known: Knowledge;
  /** Undefined when the task has ended. */
  open: Why | undefined;
  snapshot: Pick<Snapshot, "counts" | "supervisor">;
  /** It is a node of the plan that has failed. */
  isFailedNode: boolean;
  maxAttempts: number;
  /** When the file came into its tray (epoch ms). */
  cameMs: number | null;
  progress: string | undefined;
  /** The last line of the run's output. */
  lastLine: string | undefined;
}

/** The events that bring a task into each state. */
const SINCE: Readonly<Record<string, readonly string[]>> = {
  ready: ["retry_scheduled", "released", "reclaimed", "selected"],
  held: ["held"],
  running: ["started"],
  done: ["completed"],
  failed: ["completed", "quarantined"],
};

export function explainTask(sources: Sources): Explanation {
  const { known, open } = sources;
  const { id, state } = known;
  return {
    id,
    state,
    ...(open === undefined ? explainEnd(sources) : explainOpen(open)),
    since_ms: sinceOf(known) ?? sources.cameMs,
    facts: factsOf(sources).flatMap(([name, text]) =>
      text === undefined || text === "" ? [] : [{ name, text }],
    ),
  };
}

type Reason = Pick<Explanation, "why" | "is_stuck" | "do">;

function explainOpen({ text, isStuck, do: todo }: Why): Reason {
  return { why: text, is_stuck: isStuck, do: todo ?? null };
}

function explainEnd({ known, isFailedNode }: Sources): Reason {
  const { id, state, record, landing, failed_lines: failedLines } = known;
  const error = record?.["error"];
  if (state === "failed") {
    const kind = textOf(record?.["kind"], "unknown");
    const root = record?.["root"];
    if (kind === "dependency_failed" && typeof root === "string")
      return {
        why: `was ${textOf(error, "skipped")}`,
        is_stuck: true,
        do: `mailchute retry ${root}`,
      };
    const of = record?.["of"];
    if (kind === "duplicate_key" && typeof of === "string")
      return { why: `was ${textOf(error, "not run")}`, is_stuck: false, do: null };
    const why = `failed (${kind}): ${headlineOf(textOf(error, ""))}`;
    if (isFailedNode) return { why, is_stuck: true, do: mendNodes([id]) };
    // Another run would fail in the same way before a person has mended its cause.
    const verb = record?.["can_retry"] === false ? "show" : "retry";
    return { why, is_stuck: true, do: `mailchute ${verb} ${id}` };
  }
  if (state === "gone")
    return { why: "has ended, and its record was removed", is_stuck: false, do: null };
  if (landing?.state === "failed")
    return {
      why: `has completed, and its work could not land: ${landing.why}`,
      is_stuck: true,
      do: `mailchute review ${id}`,
    };
  if (landing?.state === "open")
    return {
      why: `has completed, and its work has not landed yet: ${landing.why}`,
      is_stuck: false,
      do: null,
    };
  if (failedLines !== null)
    return { why: `has completed, but ${failedLines}`, is_stuck: true, do: `mailchute show ${id}` };
  if (record?.["landing"] === "branch") {
    const { machine } = record;
    const at = typeof machine === "string" ? ` at ${machine}` : "";
    return {
      why: `has completed, and its work stays on its branch${at}`,
      is_stuck: true,
      do: at === "" ? `mailchute review ${id}` : null,
    };
  }
  return { why: "has completed", is_stuck: false, do: null };
}

function sinceOf({ state, events }: Knowledge): number | undefined {
  const wanted = SINCE[state];
  const last = events.findLast((event) => wanted?.includes(String(event["event"])));
  return typeof last?.["t"] === "number" ? last["t"] : undefined;
}

function factsOf(sources: Sources): [name: string, text: string | undefined][] {
  const { known, progress, lastLine } = sources;
  const { task, owner, dependencies } = known;
  const text = (name: string): string | undefined => {
    const value = task?.[name];
    return typeof value === "string" || typeof value === "number" ? String(value) : undefined;
  };
  return [
    ...known.field_warnings.map((why): [string, string] => ["warning", why]),
    ["run", runText(sources)],
    ["last run", lastRunText(known)],
    ...dependencies.map(({ id, state }): [string, string] => ["after", `${id} (${state})`]),
    ["priority", text("priority")],
    ["group", text("group")],
    ["slots", slotsText(sources)],
    ["worker", owner === null ? undefined : `pid ${owner.pid ?? "?"}, ${owner.verdict}`],
    ["progress", progress],
    ["says", lastLine],
    ["file", known.path],
  ];
}

function runText({ known, maxAttempts }: Sources): string | undefined {
  const { attempt, task, state } = known;
  if (attempt === null || attempt === 0 || state === "done") return undefined;
  return `${attempt} of ${maxAttemptsIn(task) ?? maxAttempts}`;
}

/** How the run before this one ended. */
function lastRunText({ events, state }: Knowledge): string | undefined {
  if (state === "done" || state === "failed") return undefined;
  const ends = ["retry_scheduled", "reclaimed", "released"];
  const last = events.findLast((event) => ends.includes(String(event["event"])));
  if (last === undefined) return undefined;
  const error = textOf(last["error"] ?? last["reason"], "");
  return `${String(last["event"]).replace("_", " ")}${error === "" ? "" : `: ${headlineOf(error)}`}`;
}

/** Undefined for a task that could not start now. */
function slotsText({ known, snapshot }: Sources): string | undefined {
  if (known.state !== "waiting" && known.state !== "ready") return undefined;
  const slots = snapshot.supervisor.document?.workers;
  if (slots === undefined || snapshot.supervisor.state !== "running") return undefined;
  return `${snapshot.counts.running} of ${slots} are busy`;
}
