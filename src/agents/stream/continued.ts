/**
 * Sessions that another task continued: `sessions/continued/<session>.<n>.json`, one file for each time. The file with the highest n
 * names the task that has the session. It is made before that task is submitted, and only one process can make it. So a session has
 * one writer.
 */
import { createHash } from "node:crypto";
import { join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { type AttemptOutcome, failed } from "../../core/outcome.ts";
import { isText, oneOf, orElse, type Shape, shape } from "../../core/shape.ts";
import { Documents } from "../../host/document-store.ts";
import { removeDocument } from "../../host/documents.ts";
import { listDir } from "../../host/list-dir.ts";
import type { Usage } from "./facts.ts";
import { isUsage, NO_USAGE } from "./run-state.ts";
import type { SessionDocument } from "./session-file.ts";

export interface ContinuedSession extends SessionDocument {
  /** The task that had the session before. */
  continues: string;
}

const PLAIN_ID = /^[A-Za-z0-9-]{1,64}$/;
const NAME = /^([A-Za-z0-9-]{1,64})\.([1-9]\d{0,8})$/;

const continued = shape({
  v: oneOf(1),
  task_id: isText,
  session_id: isText,
  booked: orElse(isUsage, NO_USAGE),
}) as Shape<ContinuedSession>;
const continuedIn = (stateDir: string, isDurable = false): Documents<ContinuedSession> =>
  new Documents(stateDir, join("sessions", "continued"), continued, { isDurable });

/** The name of the file with the highest n; undefined when no task has continued the session. */
export function lastName(stateDir: string, sessionId: string): string | undefined {
  const key = keyOf(sessionId);
  const numbers = listDir(continuedIn(stateDir).dir).flatMap((file) => {
    const [, of, n] = NAME.exec(file.replace(/\.json$/, "")) ?? [];
    return of === key ? [Number(n)] : [];
  });
  return numbers.length === 0 ? undefined : `${key}.${Math.max(...numbers)}`;
}

export function readContinued(stateDir: string, name: string): ContinuedSession | undefined {
  return NAME.test(name) ? continuedIn(stateDir).read(name) : undefined;
}

/**
 * Gives the session to a task.
 * @param after the return value of `lastName`
 * @returns the name; undefined when another task was faster
 * @throws a system error
 */
export function giveSession(
  stateDir: string,
  session: ContinuedSession & { session_id: string },
  after: string | undefined,
  isDurable: boolean,
): string | undefined {
  const name = `${keyOf(session.session_id)}.${numberOf(after) + 1}`;
  return continuedIn(stateDir, isDurable).create(name, session) ? name : undefined;
}

/** Undoes `giveSession`, when the task could not be submitted. */
export function takeBackSession(stateDir: string, name: string): void {
  removeDocument(continuedIn(stateDir).path(name));
}

/**
 * The session that the first run of a task continues.
 * @param named the task's field `session`
 * @returns the refusal when yet another task has continued the session; undefined when the run begins as usual
 */
export function beginWith(
  stateDir: string,
  named: unknown,
  fresh: SessionDocument,
  accounts: readonly string[],
): SessionDocument | AttemptOutcome | undefined {
  if (typeof named !== "string") return undefined;
  const session = readContinued(stateDir, named);
  const isOurs =
    session?.task_id === fresh.task_id &&
    session.agent === fresh.agent &&
    session.cwd === fresh.cwd;
  if (session?.session_id == null || !isOurs) return undefined;
  const last = lastName(stateDir, session.session_id);
  if (last === named) {
    // What the session was told before was about another task.
    const { offer: _, ...begun } = session;
    return accounts.includes(session.account)
      ? { ...begun, untold: true }
      : { ...fresh, hand_off: session.hand_off };
  }
  const { task_id: other = "" } = readContinued(stateDir, last ?? "") ?? {};
  return failed(
    "config",
    "ErrSessionTaken",
    `the task ${other} has continued its session: continue that task`,
    { canRetry: false },
  );
}

/**
 * Notes that a run in a continued session is booked: a retry of its task begins with the same document, and must not book that run again.
 * @param booked the usage that is booked for the whole session
 */
export function noteContinuedBooked(stateDir: string, sessionId: string, booked: Usage): void {
  const name = lastName(stateDir, sessionId);
  const found = name === undefined ? undefined : readContinued(stateDir, name);
  if (name === undefined || found?.session_id !== sessionId) return;
  if (isDeepStrictEqual(found.booked, booked)) return;
  continuedIn(stateDir).replace(name, { ...found, booked });
}

function numberOf(name: string | undefined): number {
  return name === undefined ? 0 : Number(NAME.exec(name)?.[2] ?? 0);
}

/** The program chooses the id of a session, so it may hold any character. */
function keyOf(sessionId: string): string {
  if (PLAIN_ID.test(sessionId)) return sessionId;
  return createHash("sha256").update(sessionId, "utf8").digest("hex").slice(0, 32);
}
