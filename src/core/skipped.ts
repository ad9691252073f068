/** Tasks that ended without a run, for no fault of their own. They are shown as skipped. Pure. */
import type { FailureKind } from "./task.ts";

const KINDS: readonly FailureKind[] = ["dependency_failed", "duplicate_key"];

/** Texts in records: the record of a skipped task holds one of them, and no other record in `failed/` does. */
export const SKIPPED_MARKS: readonly string[] = KINDS.map((kind) => `"kind":"${kind}"`);

/** @param kind of a record, or of an event `completed` */
export function isSkippedKind(kind: unknown): boolean {
  return KINDS.some((one) => one === kind);
}

/** What lists call a task that has an error record of this kind. */
export function failedStateOf(kind: unknown): "failed" | "skipped" | "cancelled" {
  return isSkippedKind(kind) ? "skipped" : kind === "cancelled" ? "cancelled" : "failed";
}

/** `not run: nightly-1 has the same dedup_key`. @param of the id of the task that has the key */
export function duplicateText(of: string): string {
  return `not run: ${of} has the same dedup_key`;
}
