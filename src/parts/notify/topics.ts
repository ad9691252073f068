/** Chooses the lines of the journals that a person may want to hear about. Pure. */
import type { NotifyTopic } from "../../core/notify-settings.ts";
import { isSkippedKind } from "../../core/skipped.ts";
import { visibleMessage } from "../../core/visible.ts";

export interface News {
  topic: NotifyTopic;
  text: string;
  /** The task that has failed. */
  failed?: string;
}

/** The beginnings of events that are worth parsing: our records begin with their event. */
const EVENTS = ["failed", "quarantined", "lines_failed"].map((event) => `{"event":"${event}",`);

/** Alerts that need no person, or whose news is reported as another topic. */
const SILENT: ReadonlySet<string> = new Set([
  "task_failed",
  "lines_failed",
  // The failed task is reported.
  "tasks_skipped",
  "duplicate",
  "polling",
  "answered",
  "intake_resumed",
  // A message was not received. It is tried again.
  "notify",
]);
const ALERTS: Readonly<Record<string, NotifyTopic>> = {
  question: "question",
  needs_human: "question",
  budget: "budget",
  quota: "quota",
};

export function mayBeNews(line: string): boolean {
  return EVENTS.some((head) => line.startsWith(head));
}

/** Undefined for a skipped task: the task that failed is reported. */
export function newsOfEvent(record: Readonly<Record<string, unknown>>): News | undefined {
  const { task_id: id, error, kind } = record;
  if (isSkippedKind(kind)) return undefined;
  const what = line(`${text(id)}: ${text(error) || text(kind)}`);
  return { topic: "failed", text: what, ...(record["event"] === "failed" && { failed: text(id) }) };
}

export function newsOfAlert(record: Readonly<Record<string, unknown>>): News | undefined {
  const kind = text(record["alert"]);
  if (SILENT.has(kind)) return undefined;
  const topic = Object.hasOwn(ALERTS, kind) ? ALERTS[kind] : undefined;
  return { topic: topic ?? "stuck", text: line(text(record["message"])) };
}

function line(whole: string): string {
  return visibleMessage(whole.trim().replace(/\s*\n\s*/g, " "));
}

function text(value: unknown): string {
  return typeof value === "string" ? value : "";
}
