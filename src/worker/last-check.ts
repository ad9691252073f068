/**
 * Keeps how the check of a run failed, so that the next run of its task does not work blind: `sessions/<id>@<submission>.check.txt`. Its
 * program finds it in MAILCHUTE_LAST_CHECK, an agent also in its packet.
 */
import fs from "node:fs";
import { join } from "node:path";
import type { Assignment } from "../agents/agent.ts";
import { withoutSecrets } from "../agents/secrets.ts";
import {
  type AttemptOutcome,
  errorText,
  type Failed,
  headlineOf,
  retryPolicyOf,
} from "../core/outcome.ts";
import { stateTree } from "../core/state-tree.ts";
import { makeDirs } from "../host/make-dirs.ts";
import { readEnd, tryReadText, writeAnew } from "../host/regular-file.ts";
import { systemClock } from "../host/system-clock.ts";
import { Alerts } from "../journal/alerts.ts";

/** How much of the output of the check is kept (bytes). */
const OUTPUT_BYTES_MAX = 8 * 1024;

/** The path of the text. */
export function lastCheckPath(sessionsDir: string, id: string, lease: string): string {
  return join(sessionsDir, `${id}@${lease.slice(0, lease.indexOf("."))}.check.txt`);
}

/**
 * Keeps the text for the next run of the task, and tells a person when the check has failed in the same way before. When all is well, it
 * removes the text. Without room on the disk the next run works without it.
 * @param fault what the check says; another fault is left alone
 * @returns whether there is a next run to which it is told
 */
export function keepLastCheck(assignment: Assignment, fault: AttemptOutcome | undefined): boolean {
  const { stateDir, task, lease, attempt, settings, secrets = [] } = assignment;
  const { sessions } = stateTree(stateDir);
  const path = lastCheckPath(sessions, task.id, lease);
  if (fault === undefined && assignment.lastCheck !== undefined) fs.rmSync(path, { force: true });
  if (fault?.kind !== "failed" || fault.failure !== "verify") return false;
  const log = readEnd(join(assignment.runDir, "verify.log"), OUTPUT_BYTES_MAX);
  // The lines that begin a program show its arguments, which may be secrets.
  const lastWords = log.replace(/^\$ ".*\n/gm, "").trim();
  const shown = withoutSecrets({ ...fault, lastWords }, secrets) as Failed;
  const text = `${shown.message}\n\n${shown.lastWords ?? ""}\n`;
  const before = assignment.lastCheck === undefined ? undefined : tryReadText(assignment.lastCheck);
  if (before !== undefined && shapeOf(before) === shapeOf(text)) tellSame(assignment, shown);
  if (attempt >= retryPolicyOf(settings, task).maxAttempts) return false;
  try {
    makeDirs(sessions, 1);
    writeAnew(path, text);
    return true;
  } catch {
    // The disk is full. The next run finds out by itself.
    return false;
  }
}

/** Times, sizes and addresses differ from run to run. */
function shapeOf(text: string): string {
  return text.replace(/0x[0-9a-f]+|\d+/gi, "#");
}

function tellSame({ stateDir, task }: Assignment, fault: Failed): void {
  const alerts = new Alerts(stateTree(stateDir).alerts, systemClock, () => {});
  alerts.raise(
    "same_check",
    `the check of ${task.id} has failed twice in the same way: ${headlineOf(errorText(fault)).slice(0, 300)}; see \`mailchute logs ${task.id}\``,
  );
  alerts.close();
}
