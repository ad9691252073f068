/**
 * Runs a coding agent unless a person has its task (`agents/attached.ts`), and ends the run when a person takes it. What the person has
 * done counts as the work of a run: its checks judge it.
 */
import { messageOf } from "../../core/errors.ts";
import { type AttemptOutcome, deferred } from "../../core/outcome.ts";
import { stateTree } from "../../core/state-tree.ts";
import { tryStatOf } from "../../host/regular-file.ts";
import type { Assignment } from "../agent.ts";
import { type Attached, attachedIn, takenOver } from "../attached.ts";
import { makeRunDir } from "../program.ts";
import { keepInRun, SessionFile, sessionAt } from "./session-file.ts";

/** How often a run looks whether a person wants its task (ms). */
const LOOK_MS = 300;

/** @param key of the session @param run the run of the agent */
export async function runBesidePerson(
  assignment: Assignment,
  key: string,
  run: () => Promise<AttemptOutcome>,
): Promise<AttemptOutcome> {
  const { stateDir, stop, task } = assignment;
  const taken = takenOver(stateDir, task.id);
  if (taken !== undefined && "outcome" in taken) return taken.outcome;
  if (taken !== undefined) {
    const hindrance = adoptSession(stateDir, key, taken.document);
    if (hindrance !== undefined) return hindrance;
    if (isDone(taken.document, assignment)) return judgeDone(assignment, key);
  }
  const isWanted = (): AttemptOutcome | undefined => {
    const now = takenOver(stateDir, task.id);
    return now !== undefined && "outcome" in now ? now.outcome : undefined;
  };
  const timer = setInterval(() => {
    // Its turn ends, and the session stays.
    if (isWanted() !== undefined) stop.stop("interrupt");
  }, LOOK_MS);
  let outcome: AttemptOutcome;
  try {
    outcome = await run();
  } finally {
    clearInterval(timer);
  }
  return outcome.kind === "released" ? (isWanted() ?? outcome) : outcome;
}

/** The next run of a task that was put back for a person goes on in the session in which the person was. */
function adoptSession(
  stateDir: string,
  key: string,
  { id, session }: Attached,
): AttemptOutcome | undefined {
  const { sessions } = stateTree(stateDir);
  if (session === undefined || sessionAt(sessions, key) !== undefined) return undefined;
  try {
    new SessionFile(sessions, key).write({ ...session, task_id: id, was_refused: false });
    // From here on the session is the task's own.
    const documents = attachedIn(stateDir);
    const document = documents.load(id);
    if (document !== undefined) {
      delete document.session;
      documents.replace(id, document);
    }
    return undefined;
  } catch (error) {
    return deferred(`cannot go on in the session of its person: ${messageOf(error)}`);
  }
}

/** Whether the person's word still counts: no check that came after it has failed. */
function isDone({ state, since_ms: sinceMs }: Attached, { lastCheck }: Assignment): boolean {
  if (state !== "done") return false;
  const checkedMs = lastCheck === undefined ? 0 : (tryStatOf(lastCheck)?.mtimeMs ?? 0);
  return checkedMs < sinceMs;
}

/** The session stays for the case that its check fails: the agent then goes on in it. */
function judgeDone({ runDir, stateDir }: Assignment, key: string): AttemptOutcome {
  const hindrance = makeRunDir(runDir);
  if (hindrance !== undefined) return hindrance;
  const { sessions } = stateTree(stateDir);
  const session = sessionAt(sessions, key);
  if (session !== undefined) keepInRun(runDir, sessions, session);
  return {
    kind: "completed",
    output: null,
    verdict: "unknown",
    verdictReason: "a person has done it (mailchute attach)",
    exitCode: null,
  };
}
