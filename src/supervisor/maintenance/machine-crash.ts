/**
 * Decides whether a crash of the machine uses up an attempt. It does not when the next run goes on in the session of the last one, because
 * little was lost. `sessions/<id>@<submission>.crashes.json` counts, so that a task that crashes the machine itself does not run for ever.
 */
import { join } from "node:path";
import { systemCode } from "../../core/errors.ts";
import type { ProcessingName } from "../../core/names.ts";
import { isCount, isText, oneOf, shape } from "../../core/shape.ts";
import { Documents } from "../../host/document-store.ts";
import { readDocument } from "../../host/documents.ts";
import { listDir } from "../../host/list-dir.ts";

/** So many crashes of one submission use up no attempt. */
const EXCUSED_MAX = 3;

const crashes = shape({ v: oneOf(1), count: isCount });
const begunSession = shape({ session_id: isText });

/** Counts the crash. @returns true when it uses up no attempt */
export function excuseCrash(
  sessionsDir: string,
  { id, submission }: Pick<ProcessingName, "id" | "submission">,
): boolean {
  const task = `${id}@${submission}.`;
  const isResumed = listDir(sessionsDir).some(
    (name) =>
      name.startsWith(task) &&
      name.endsWith(".json") &&
      readDocument(join(sessionsDir, name), begunSession) !== undefined,
  );
  if (!isResumed) return false;
  // The next crash may be a power cut, and must not lose the count.
  const counts = new Documents(sessionsDir, "", crashes, { isDurable: true });
  const count = (counts.read(`${task}crashes`)?.count ?? 0) + 1;
  if (count > EXCUSED_MAX) return false;
  try {
    counts.replace(`${task}crashes`, { v: 1, count });
    return true;
  } catch (error) {
    if (systemCode(error) === "") throw error;
    return false;
  }
}
