/** Decodes lines of a batch and encodes their results. It does little more than one JSON.parse per line, because there may be millions. */

import { ErrInvalidTask, messageOf } from "../core/errors.ts";
import { BATCH_LINES_MAX } from "../core/limits.ts";
import { explainBadId } from "../core/names.ts";
import { type Completed, errorText, type Failed } from "../core/outcome.ts";
import type { Task } from "../core/task.ts";
import { JsonFault, parseObjectText } from "./json.ts";
import { optional, shorten } from "./schema.ts";
import { checkBody, FREE_MEMBERS } from "./task-codec.ts";
import { type Static, Type } from "./typebox.ts";

const LineNumber = Type.Integer({ minimum: 1, maximum: BATCH_LINES_MAX });

/** One line of `<id>_results.ndjson`. */
export const LineResultSchema = Type.Object(
  {
    line: LineNumber,
    id: Type.String({ description: "the line's own id, or <batch>#<line>" }),
    status: Type.Union([Type.Literal("completed"), Type.Literal("failed")]),
    attempts: Type.Integer({ minimum: 0, description: "0: the line is no task and never ran" }),
    ...optional({
      duration_ms: Type.Number({ minimum: 0, description: "of the last run" }),
      output: Type.Unknown({ description: "of a completed line" }),
      verdict: Type.String(),
      verdict_reason: Type.String(),
      exit_code: Type.Integer(),
      signal: Type.String(),
      error: Type.String({ description: "of a failed line" }),
      code: Type.String(),
      kind: Type.String(),
    }),
  },
  { $id: "results", title: "mailchute line of batch results", additionalProperties: true },
);

type LineResult = Static<typeof LineResultSchema>;

/** Decodes one line of a batch into a task. @throws ErrInvalidTask */
export function decodeLine(text: string, batchId: string, line: number): Task {
  const where = { id: batchId };
  let fields: Record<string, unknown>;
  try {
    fields = parseObjectText(text, FREE_MEMBERS);
  } catch (error) {
    const fault =
      error instanceof JsonFault
        ? `${error.message} (byte ${error.offset} of the line)`
        : `not JSON${placeIn(error)}`;
    throw new ErrInvalidTask(fault, where);
  }
  const own = fields["id"];
  const id = typeof own === "string" ? own : `${batchId}#${line}`;
  const task = checkBody(fields, id, where);
  if (own !== undefined) {
    const fault = explainBadId(id);
    if (fault !== undefined) throw new ErrInvalidTask(`bad id ${shorten(id)}: ${fault}`, where);
  }
  const unfit = findUnfit(task);
  if (unfit !== undefined)
    throw new ErrInvalidTask(
      `a line of a batch has no ${unfit}: enqueue it as a task of its own`,
      where,
    );
  task.id = id;
  return task;
}

/** A field that a line cannot have: without an effect, the line would run too early, or beside what it must not meet. */
function findUnfit({ metadata, not_before: notBefore, owns, limits }: Task): string | undefined {
  if ((metadata?.dependencies?.length ?? 0) > 0) return "dependencies";
  if (notBefore !== undefined) return "not_before";
  if (owns !== undefined) return "owns";
  return limits !== undefined && limits.length > 0 ? "limits" : undefined;
}

/** Says only where the JSON is broken. Node's own message may quote the text around it, which may be a secret. */
function placeIn(error: unknown): string {
  const [, at] = / at position (\d+)/.exec(messageOf(error)) ?? [];
  return at === undefined ? "" : ` (character ${at} of the line)`;
}

/** Encodes the result of a line that ended for good. The text ends with a line break. */
export function encodeLineResult(
  line: number,
  id: string,
  attempts: number,
  durationMs: number,
  outcome: Completed | Failed,
): string {
  const isDone = outcome.kind === "completed";
  const head = `{"line":${line},"id":${JSON.stringify(id)},"status":"${isDone ? "completed" : "failed"}","attempts":${attempts},"duration_ms":${durationMs}`;
  const exit = outcome.exitCode === null ? "" : `,"exit_code":${outcome.exitCode}`;
  if (isDone) {
    const verdict =
      outcome.verdict === "unknown" && outcome.verdictReason === ""
        ? ""
        : `,"verdict":${JSON.stringify(outcome.verdict)},"verdict_reason":${JSON.stringify(outcome.verdictReason)}`;
    const output = outcome.output === null ? "null" : JSON.stringify(outcome.output);
    return `${head}${verdict}${exit},"output":${output ?? "null"}}\n`;
  }
  const { signal } = outcome;
  const more = {
    code: outcome.code,
    kind: outcome.failure,
    error: errorText(outcome),
    ...(signal === null ? {} : { signal }),
  };
  return `${head}${exit},${JSON.stringify(more).slice(1)}\n`;
}

/** Encodes the result of a line that is not a valid task. */
export function encodeBadLine(line: number, id: string, error: string): string {
  const result: LineResult = {
    line,
    id,
    status: "failed",
    attempts: 0,
    code: "ErrInvalidTask",
    kind: "invalid",
    error,
  };
  return `${JSON.stringify(result)}\n`;
}

/** Decodes a line of results. Undefined when it is incomplete or written by another program. */
export function decodeLineResult(
  text: string,
): { line: number; isCompleted: boolean; isBad: boolean } | undefined {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
  const { line, status, attempts } = (value ?? {}) as Partial<LineResult>;
  if (typeof line !== "number" || !Number.isInteger(line) || line < 1 || line > BATCH_LINES_MAX)
    return undefined;
  if (status !== "completed" && status !== "failed") return undefined;
  return { line, isCompleted: status === "completed", isBad: attempts === 0 };
}
