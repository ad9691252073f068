/**
 * Remembers the session of a task for its next run: `sessions/<key>.json`. The next run goes on in that session. The file is written
 * before anything depends on it. A crash loses at most the last state, and then a run begins a new session.
 */
import { join } from "node:path";
import {
  having,
  type Is,
  isText,
  oneOf,
  orElse,
  orNull,
  type Shape,
  shape,
} from "../../core/shape.ts";
import { Documents } from "../../host/document-store.ts";
import { readDocument, removeDocument } from "../../host/documents.ts";
import { replaceDocument } from "../../host/replace-document.ts";
import type { Usage } from "./facts.ts";
import { isUsage, NO_USAGE } from "./run-state.ts";
import type { Offer } from "./task-messages.ts";

export interface SessionDocument {
  v: 1;
  task_id: string;
  agent: string;
  kind: string;
  /** The account of the session. The session lives in the home of this account. */
  account: string;
  /** Null until the program has reported it. */
  session_id: string | null;
  /** The directory where the session was started. It is only resumed there. */
  cwd: string;
  /** How much of the session's usage was booked so far, if the program reports sums. */
  booked: Usage;
  /** True when the service refused the last run with 401. One more run is then allowed. */
  was_refused: boolean;
  /** What the last run did, for a new session that takes over. */
  hand_off: string;
  /** True until a run has shown that the session knows its task. */
  untold?: boolean;
  /** The packet with which the task was last given to the session, and where to find the proof that the session has it. */
  offer?: Offer;
  /** The task that began the session, if that is another one. */
  continues?: string;
  /** True when the last run had done its work, and another run follows because of a message. */
  has_news?: boolean;
  /** True when a session before this one had become too long for the model. It is replaced only once. */
  overflowed?: boolean;
  /** How the last run of the task failed, and how many runs in a row failed like this. */
  failing?: { how: string; count: number };
  /** A person has worked in it after the task had failed: files may be older than the first run of this submission. */
  by_hand?: true;
  /** How many runs in a row were stopped because they were silent. */
  silent_runs?: number;
  updated_at: number;
}

const MEMBERS = {
  v: oneOf(1),
  task_id: isText,
  agent: isText,
  kind: isText,
  account: isText,
  session_id: orNull(isText),
  cwd: isText,
  booked: orElse(isUsage, NO_USAGE),
  hand_off: orElse(isText, ""),
};
const session = shape(MEMBERS) as Shape<SessionDocument>;
/** Whether a value inside another document is a session. */
export const isSession = having(MEMBERS) as Is<SessionDocument>;
/** @param dir `sessions/` */
const sessionsIn = (dir: string): Documents<SessionDocument> =>
  new Documents(dir, "", session, { depth: 1 });

export function newSession(
  of: Pick<SessionDocument, "task_id" | "agent" | "kind" | "account" | "cwd">,
): SessionDocument {
  return {
    v: 1,
    ...of,
    session_id: null,
    booked: NO_USAGE,
    was_refused: false,
    hand_off: "",
    untold: true,
    updated_at: 0,
  };
}

/** Called when a run of this session was booked after its process was killed: the session's next run must not book it again. */
export function noteBooked(
  sessionsDir: string,
  key: string,
  sessionId: string | null,
  booked: Usage,
): void {
  const sessions = sessionsIn(sessionsDir);
  const found = sessions.read(key);
  if (found?.session_id !== sessionId) return;
  // A later run may have booked more.
  if (
    found.booked.inputTokens + found.booked.outputTokens <
    booked.inputTokens + booked.outputTokens
  )
    sessions.replace(key, { ...found, booked });
}

/** The session of a task, whichever agent began it. @param key see `SessionFile` */
export function sessionAt(sessionsDir: string, key: string): SessionDocument | undefined {
  return sessionsIn(sessionsDir).read(key);
}

export class SessionFile {
  private readonly sessions: Documents<SessionDocument>;

  /** @param key `<id>@<submission>`, and for a phase of a node `.<phase>` after it */
  constructor(
    sessionsDir: string,
    private readonly key: string,
  ) {
    this.sessions = sessionsIn(sessionsDir);
  }

  /**
   * The session for the next run: the remembered one, if this agent began it in this directory with one of its accounts; else a new
   * session, which is told what the other one left.
   */
  read(fresh: SessionDocument, accounts: readonly string[]): SessionDocument {
    const found = this.sessions.read(this.key);
    if (found === undefined) return fresh;
    const isSame =
      found.agent === fresh.agent &&
      found.cwd === fresh.cwd &&
      (accounts.includes(found.account) || found.session_id === null);
    return isSame ? found : { ...fresh, hand_off: found.hand_off };
  }

  write(session: SessionDocument): void {
    this.sessions.replace(this.key, { ...session, updated_at: Math.floor(Date.now() / 1000) });
  }

  remove(): void {
    removeDocument(this.sessions.path(this.key));
  }
}

/**
 * Writes the copy that a run leaves in its folder. It names the task of the run and its session, which a later task may continue. The
 * copy is kept as long as the run's other files.
 */
export function keepInRun(runDir: string, sessionsDir: string, session: SessionDocument): void {
  try {
    replaceDocument(
      join(runDir, RUN_COPY),
      { ...session, updated_at: Math.floor(Date.now() / 1000) },
      { stagingDir: join(sessionsDir, ".tmp"), missingMax: 2 },
    );
  } catch {
    // The disk is full, or the program has put a folder there. The run itself does not need the copy.
  }
}

/** Undefined when it was no run of a coding agent. @param runDir the directory of any run */
export function sessionOfRun(runDir: string): SessionDocument | undefined {
  return readDocument(join(runDir, RUN_COPY), session);
}

const RUN_COPY = "session.json";
