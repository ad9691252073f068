/**
 * Decides whether a crash of the machine uses up an attempt. It does not when the next run goes on in the session of the last one, because
 * little was lost. `sessions/<id>@<submission>.crashes.json` counts, so that a task that crashes the machine itself does not run for ever.
 */
import { join } from "node:path";
import { systemCode } from "../../core/errors.ts";
import type { ProcessingName } from "../../core/names.ts";
import { readDocument, replaceDocument } from "../../host/documents.ts";
import { listDir } from "../../host/list-dir.ts";

/** So many crashes of one submission use up no attempt. */
const EXCUSED_MAX = 3;

interface Crashes {
  v: 1;
  count: number;
}

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
      typeof readDocument<{ session_id?: unknown }>(join(sessionsDir, name))?.session_id ===
        "string",
  );
  if (!isResumed) return false;
  const path = join(sessionsDir, `${task}crashes.json`);
  const count = (readDocument<Crashes>(path)?.count ?? 0) + 1;
  if (count > EXCUSED_MAX) return false;
  try {
    // The next crash may be a power cut, and must not lose the count.
    replaceDocument(path, { v: 1, count } satisfies Crashes, { isDurable: true });
    return true;
  } catch (error) {
    if (systemCode(error) === "") throw error;
    return false;
  }
}
