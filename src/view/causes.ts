/** Groups errors by their cause: two errors have the same cause when they differ only in numbers, names and places. Pure. */
import { headlineOf } from "../core/outcome.ts";

const CAUSE_CHARS_MAX = 200;
/** The parts of an error that differ from one run to the next. The order counts: a path may hold an id, and an id may hold digits. */
const VARYING: readonly RegExp[] = [
  /\b[a-z][a-z0-9+.-]*:\/\/\S+/gi,
  /(?:\.{0,2}\/)?(?:[\w@.~-]+\/)+[\w@.~-]+|\/[\w@.~-]+/g,
  /\b[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\b/gi,
  /\b(?=[0-9a-f]*\d)[0-9a-f]{7,}\b/gi,
  /\d+(?:[.,:]\d+)*/g,
];

/** The error without its varying parts, as a key. @param id of the task, which its own errors often name */
export function causeOf(error: string, id: string): string {
  const headline = headlineOf(error).slice(0, 4 * CAUSE_CHARS_MAX);
  const named = id === "" ? headline : headline.replace(wholeWord(id), "<>");
  return VARYING.reduce((text, part) => text.replace(part, "<>"), named)
    .replace(/\s+/g, " ")
    .trim()
    .slice(0, CAUSE_CHARS_MAX);
}

function wholeWord(id: string): RegExp {
  return new RegExp(`(?<![\\w-])${id.replace(/[^\w]/g, "\\$&")}(?![\\w-])`, "g");
}

/** Errors of one cause. */
export interface Cause {
  kind: string;
  /** The headline of the first one. */
  error: string;
  count: number;
  /** Ids in the order of their failures; when there are very many, only some. */
  tasks: string[];
  /** When the first and the last one failed (epoch ms). */
  first_ms: number;
  last_ms: number;
}

export interface Failure {
  id: string;
  kind: string;
  error: string;
  atMs: number;
}

const TASKS_KEPT_MAX = 1000;

/** The cause with the most errors first. @param failures in order of time */
export function groupByCause(failures: Iterable<Failure>): Cause[] {
  const causes = new Map<string, Cause>();
  for (const { id, kind, error, atMs } of failures) {
    // For a skipped task, leave out the chain that leads to the failed task.
    const what = kind === "dependency_failed" ? error.replace(/ \(.*\)$/, "") : error;
    const key = `${kind}\n${causeOf(what, id)}`;
    const cause = causes.get(key) ?? {
      kind,
      error: headlineOf(what).slice(0, 4 * CAUSE_CHARS_MAX),
      count: 0,
      tasks: [],
      first_ms: atMs,
      last_ms: atMs,
    };
    causes.set(key, cause);
    cause.count++;
    cause.last_ms = Math.max(cause.last_ms, atMs);
    if (cause.tasks.length < TASKS_KEPT_MAX) cause.tasks.push(id);
  }
  return [...causes.values()].sort((a, b) => b.count - a.count || a.first_ms - b.first_ms);
}
