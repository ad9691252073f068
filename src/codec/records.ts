/** Encodes and decodes result and error records. The text of the task is copied as it is, so that no digit of it changes. */

import { isObject } from "../core/json-object.ts";
import { RECORD_DEPTH_MAX } from "../core/limits.ts";
import type { ErrorRecord, ResultRecord } from "../core/task.ts";
import { JsonFault, scanObject } from "./json.ts";

/** The bytes of a record. `taskText` is the task as it ran; undefined when there was no task. */
export function encodeRecord(
  record: ResultRecord | ErrorRecord,
  taskText: string | undefined,
): Buffer {
  const head = JSON.stringify(record);
  return Buffer.from(
    taskText === undefined ? `${head}\n` : `${head.slice(0, -1)},"task":${taskText}}\n`,
    "utf8",
  );
}

export interface DecodedRecord {
  record: (ResultRecord | ErrorRecord) & { task?: unknown };
  /** The text of the task inside, exactly as it ran; undefined when the record has none. */
  taskText: string | undefined;
}

/** Decodes a record. Undefined when the bytes are not a record: the file is incomplete, or from another program. */
export function decodeRecord(bytes: Buffer): DecodedRecord | undefined {
  try {
    const { value, text, spans } = scanObject(bytes, RECORD_FREE, RECORD_DEPTH_MAX);
    if (typeof value["task_id"] !== "string") return undefined;
    correct(value);
    const span = spans.get("task");
    return {
      record: value as unknown as DecodedRecord["record"],
      taskText: span === undefined ? undefined : text.slice(span[0], span[1]),
    };
  } catch (error) {
    if (error instanceof JsonFault) return undefined;
    throw error;
  }
}

/** In a record that another program wrote, a field with an invalid value counts as missing. */
function correct(record: Record<string, unknown>): void {
  record["attempts"] = Number.isInteger(record["attempts"]) ? record["attempts"] : 0;
  record["lease"] ??= "";
  if (record["run"] !== undefined && typeof record["run"] !== "string") record["run"] = null;
  for (const key of TEXTS)
    if (record[key] !== undefined && typeof record[key] !== "string") record[key] = "";
  if (record["batch"] !== undefined && !isObject(record["batch"])) delete record["batch"];
}

const TEXTS = ["lease", "agent_id", "verdict", "verdict_reason", "error", "code", "kind"] as const;
const RECORD_FREE: ReadonlySet<string> = new Set(["task", "output"]);
