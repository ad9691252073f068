/**
 * Keeps how the check of a run failed, so that the next run of its task does not work blind: `sessions/<id>@<submission>.check.txt`. Its
 * program finds it in MAILCHUTE_LAST_CHECK, an agent also in its packet.
 */
import fs from "node:fs";
import { join } from "node:path";
import type { Assignment } from "../agents/agent.ts";
import { headOfQuestion } from "../agents/last-check-text.ts";
import { hideSecrets } from "../agents/secrets.ts";
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

export function isRed(fault: AttemptOutcome | undefined): fault is Failed {
  return fault?.kind === "failed" && fault.failure === "verify";
}

/** The path of the text. */
export function lastCheckPath(sessionsDir: string, id: string, lease: string): string {
  return join(sessionsDir, `${id}@${lease.slice(0, lease.indexOf("."))}.check.txt`);
}

/**
 * Keeps the text for the next run of the task, and tells a person when the check has failed in the same way before. When all is well, it
 * removes the text. Without room on the disk the next run works without it.
 * @param fault what the check says; another fault is left alone
 * @param question the question that the task waits for
 * @returns whether there is a next run to which it is told
 */
export function keepLastCheck(
  assignment: Assignment,
  fault: AttemptOutcome | undefined,
  question?: string,
): boolean {
  const { stateDir, task, lease, attempt, settings } = assignment;
  const { sessions } = stateTree(stateDir);
  const path = lastCheckPath(sessions, task.id, lease);
  if (!isRed(fault) && question === undefined) {
    if (fault === undefined && assignment.lastCheck !== undefined) fs.rmSync(path, { force: true });
    return false;
  }
  const text = `${headOfQuestion(question)}${isRed(fault) ? textOf(assignment, fault) : ""}`;
  const before = assignment.lastCheck === undefined ? undefined : tryReadText(assignment.lastCheck);
  if (isRed(fault) && before !== undefined && shapeOf(before) === shapeOf(text))
    tellSame(assignment, fault);
  if (question === undefined && attempt >= retryPolicyOf(settings, task).maxAttempts) return false;
  try {
    makeDirs(sessions, 1);
    writeAnew(path, text);
    return true;
  } catch {
    // The disk is full. The next run finds out by itself.
    return false;
  }
}

/** What the check says, without the secrets of the task. */
function textOf({ runDir, secrets = [] }: Assignment, fault: Failed): string {
  const log = readEnd(join(runDir, "verify.log"), OUTPUT_BYTES_MAX);
  // The lines that begin a program show its arguments, which may be secrets.
  const lastWords = log.replace(/^\$ ".*\n/gm, "").trim();
  return hideSecrets(`${fault.message}\n\n${lastWords}\n`, secrets);
}

/** Times, sizes and addresses differ from run to run. */
function shapeOf(text: string): string {
  return text.replace(/0x[0-9a-f]+|\d+/gi, "#");
}

function tellSame({ stateDir, task, secrets = [] }: Assignment, fault: Failed): void {
  const alerts = new Alerts(stateTree(stateDir).alerts, systemClock, () => {});
  alerts.raise(
    "same_check",
    `the check of ${task.id} has failed twice in the same way: ${hideSecrets(headlineOf(errorText(fault)), secrets).slice(0, 300)}; see \`mailchute logs ${task.id}\``,
  );
  alerts.close();
}
