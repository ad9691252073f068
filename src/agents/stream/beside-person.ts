/**
 * Runs a coding agent whose task a person may take over (`agents/attached.ts`): the run ends when the person wants the task. What the
 * person has done counts as the work of a run: its checks judge it.
 */
import { messageOf } from "../../core/errors.ts";
import { type AttemptOutcome, deferred } from "../../core/outcome.ts";
import { stateTree } from "../../core/state-tree.ts";
import { tryStatOf } from "../../host/regular-file.ts";
import { type Assignment, StopSignal, stoppedOutcome } from "../agent.ts";
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
  const { person, stateDir, stop } = assignment;
  if (person === undefined) return run();
  if (sessionAt(stateTree(stateDir).sessions, key)?.by_hand === true) assignment.isByHand = true;
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
  if (outcome.kind !== "released") return outcome;
  // What came from outside counts, also when the person had ended the run before.
  return stop.reason === undefined ? (person.wanted() ?? outcome) : stoppedOutcome(stop.reason, 0);
}

/**
 * Call this before the run of a task at which a person has been, whichever of its agents has it. It goes on in the session in which the
 * person was.
 * @param submission of the task
 * @returns the outcome when the person's word is enough, or when the run cannot begin; undefined: it runs
 */
export async function afterPerson(
  assignment: Assignment,
  document: Attached,
  submission: string,
): Promise<AttemptOutcome | undefined> {
  const key = `${assignment.task.id}@${submission}`;
  try {
    return (await takeBack(assignment, key, document)) ? judgeDone(assignment, key) : undefined;
  } catch (error) {
    return deferred(`cannot go on after a person: ${messageOf(error)}`);
  }
}

/** @returns whether the person's word is enough, and no run is needed @throws a system error */
async function takeBack(assignment: Assignment, key: string, document: Attached): Promise<boolean> {
  const { stateDir } = assignment;
  const { sessions } = stateTree(stateDir);
  const { id } = document;
  const own = sessionAt(sessions, key);
  const session = own ?? document.session;
  if (session !== undefined) {
    // A person has looked after it, so what went wrong before counts no more.
    const { failing: _failing, silent_runs: _silent, ...rest } = session;
    const taken = { ...rest, task_id: id, was_refused: false };
    const file = new SessionFile(sessions, key);
    file.write(own === undefined ? { ...taken, by_hand: true } : taken);
  }
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
