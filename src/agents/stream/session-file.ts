/**
 * Remembers the session of a task for its next run: `sessions/<key>.json`. The next run goes on in that session. The file is written
 * before anything depends on it. A crash loses at most the last state, and then a run begins a new session.
 */
import { join } from "node:path";
import { readDocument, removeDocument, replaceDocument } from "../../host/documents.ts";
import type { Usage } from "./facts.ts";
import { NO_USAGE } from "./run-state.ts";
import type { Offer } from "./say-box.ts";

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
  updated_at: number;
}

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
  const path = join(sessionsDir, `${key}.json`);
  const found = readDocument<SessionDocument>(path);
  if (found?.v !== 1 || found.session_id !== sessionId) return;
  // A later run may have booked more.
  if (
    found.booked.inputTokens + found.booked.outputTokens <
    booked.inputTokens + booked.outputTokens
  )
    replaceDocument(path, { ...found, booked });
}

export class SessionFile {
  private readonly path: string;

  /** @param key `<id>@<submission>`, and for a phase of a node `.<phase>` after it */
  constructor(sessionsDir: string, key: string) {
    this.path = join(sessionsDir, `${key}.json`);
  }

  /**
   * The session for the next run: the remembered one, if this agent began it in this directory with one of its accounts; else a new
   * session, which is told what the other one left.
   */
  read(fresh: SessionDocument, accounts: readonly string[]): SessionDocument {
    const found = readDocument<SessionDocument>(this.path);
    if (found?.v !== 1) return fresh;
    const isSame =
      found.agent === fresh.agent &&
      found.cwd === fresh.cwd &&
      (accounts.includes(found.account) || found.session_id === null);
    return isSame ? found : { ...fresh, hand_off: found.hand_off };
  }

  write(session: SessionDocument): void {
    replaceDocument(
      this.path,
      { ...session, updated_at: Math.floor(Date.now() / 1000) },
      { missingMax: 2 },
    );
  }

  remove(): void {
    removeDocument(this.path);
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
  const found = readDocument<SessionDocument>(join(runDir, RUN_COPY));
  return found?.v === 1 && typeof found.kind === "string" ? found : undefined;
}

const RUN_COPY = "session.json";
