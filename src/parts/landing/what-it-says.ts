/** Reads what a task says about its work, from its record and from the log of its checks. */
import { join } from "node:path";
import { readTail } from "../../agents/report.ts";
import { textOf } from "../../view/scan.ts";

/** How much of the end of a log is read (bytes). */
const LOG_BYTES_MAX = 2000;

export function summaryOf(record: Readonly<Record<string, unknown>> | undefined): string {
  const reason = textOf(record?.["verdict_reason"], "");
  if (reason !== "") return reason;
  const output = record?.["output"];
  if (typeof output === "string") return output.trim();
  const { summary, result } = (output ?? {}) as { summary?: unknown; result?: unknown };
  return typeof summary === "string" ? summary : typeof result === "string" ? result : "";
}

/** @param run the folder of the run */
export function verifyEndOf(run: string): string {
  return readTail(join(run, "verify.log"), LOG_BYTES_MAX).trim();
}
