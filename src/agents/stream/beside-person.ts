/**
 * Runs a coding agent whose task a person may take over (`agents/attached.ts`): the run ends when the person wants the task. What the
 * person has done counts as the work of a run: its checks judge it.
 */
import { messageOf } from "../../core/errors.ts";
import { type AttemptOutcome, deferred } from "../../core/outcome.ts";
import { stateTree } from "../../core/state-tree.ts";
import { tryStatOf } from "../../host/regular-file.ts";
import { type Assignment, StopSignal } from "../agent.ts";
import { type Attached, attachedIn, isSame } from "../attached.ts";
import { makeRunDir } from "../program.ts";
import { keepInRun, SessionFile, sessionAt } from "./session-file.ts";
import { TaskMessages } from "./task-messages.ts";

/** How often a run looks whether a person wants its task (ms). */
const LOOK_MS = 300;

/** @param key of the session @param run the run of the agent */
export async function runBesidePerson(
  assignment: Assignment,
  key: string,
  run: () => Promise<AttemptOutcome>,
): Promise<AttemptOutcome> {
  const { person, stop } = assignment;
  if (person === undefined) return run();
  try {
    if (person.document !== undefined && (await takeBack(assignment, key, person.document)))
      return judgeDone(assignment, key);
  } catch (error) {
    return deferred(`cannot go on after a person: ${messageOf(error)}`);
  }
  // The checks that follow the run must not be stopped: work that is done is judged.
  const ofRun = new StopSignal();
  stop.onStop((reason) => ofRun.stop(reason));
  assignment.stop = ofRun;
  const timer = setInterval(() => {
    // Its turn ends, and the session stays.
    if (person.wanted() !== undefined) ofRun.stop("interrupt");
  }, LOOK_MS);
  let outcome: AttemptOutcome;
  try {
    outcome = await run();
  } finally {
    clearInterval(timer);
    assignment.stop = stop;
    stop.onStop(undefined);
  }
  const isInterrupted = outcome.kind === "released" && stop.reason === undefined;
  return isInterrupted ? (person.wanted() ?? outcome) : outcome;
}

/**
 * The task goes on in the session in which the person was.
 * @returns whether the person's word is enough, and no run is needed
 * @throws a system error
 */
async function takeBack(assignment: Assignment, key: string, document: Attached): Promise<boolean> {
  const { stateDir } = assignment;
  const { sessions } = stateTree(stateDir);
  const { id, session } = document;
  if (session !== undefined && sessionAt(sessions, key) === undefined)
    new SessionFile(sessions, key).write({ ...session, task_id: id, was_refused: false });
  const isDone = countsAsDone(assignment, document);
  await attachedIn(stateDir).update(id, (now) => {
    if (now === undefined || !isSame(now, document)) return now;
    // From here on the session is the task's own.
    const { session: _session, ...rest } = now;
    return isDone ? rest : undefined;
  });
  return isDone;
}

/** Whether no check that came after the person's word has failed, and the agent has nothing to read. */
function countsAsDone(
  { lastCheck, stateDir, task }: Assignment,
  { state, since_ms: sinceMs }: Attached,
): boolean {
  if (state !== "done" || new TaskMessages(stateDir, task.id, false).unread().length > 0)
    return false;
  const checkedMs = lastCheck === undefined ? 0 : (tryStatOf(lastCheck)?.mtimeMs ?? 0);
  return checkedMs < sinceMs;
}

/** The session stays for the case that its check fails: the agent then goes on in it. */
function judgeDone(assignment: Assignment, key: string): AttemptOutcome {
  const { runDir, stateDir } = assignment;
  const hindrance = makeRunDir(runDir);
  if (hindrance !== undefined) return hindrance;
  const { sessions } = stateTree(stateDir);
  const session = sessionAt(sessions, key);
  if (session !== undefined) keepInRun(runDir, sessions, session);
  assignment.isByHand = true;
  return {
    kind: "completed",
    output: null,
    verdict: "unknown",
    verdictReason: "a person has done it (mailchute attach)",
    exitCode: null,
  };
}
