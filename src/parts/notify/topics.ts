/** Which lines of the journals a person may want to be told of. Pure. */
import type { NotifyTopic } from "../../core/notify-settings.ts";
import { isSkippedKind } from "../../core/skipped.ts";
import { visibleMessage } from "../../core/visible.ts";

export interface News {
  topic: NotifyTopic;
  text: string;
}

/** Lines of the journal of events that are worth parsing: our records begin with their event. */
const EVENTS = ["failed", "quarantined", "lines_failed"].map((event) => `{"event":"${event}",`);

/** Alerts of what is told as another topic, or needs no person. */
const SILENT: ReadonlySet<string> = new Set([
  "task_failed",
  "lines_failed",
  // The task that failed is told.
  "tasks_skipped",
  "duplicate",
  "polling",
  "answered",
  "intake_resumed",
  // That a message was not received: it is tried again.
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

/** Undefined for a task that was skipped: the one that failed is told. */
export function newsOfEvent(record: Readonly<Record<string, unknown>>): News | undefined {
  const { task_id: id, error, kind } = record;
  if (isSkippedKind(kind)) return undefined;
  return { topic: "failed", text: line(`${text(id)}: ${text(error) || text(kind)}`) };
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
