/**
 * A person who has taken a task over: `attached/<id>.json`. While the document says so, no run of the task begins, and one that has begun
 * ends and waits. `attach` writes it before it looks whether the task runs, and a worker looks at it after it has the lease, so one of
 * the two always sees the other. Only a supervisor judges whether the person's process has died.
 */
import { createHash } from "node:crypto";
import type { ClosedGate } from "../core/documents.ts";
import { messageOf } from "../core/errors.ts";
import { ATTACHED_GATE, closedGate } from "../core/gates.ts";
import type { Deferred } from "../core/outcome.ts";
import { isCount, isText, type Of, oneOf, optional, shape } from "../core/shape.ts";
import { Documents } from "../host/document-store.ts";
import { judgeOwner, parseOwner, type Verdict } from "../host/identity.ts";
import { findTree } from "../host/process-tree.ts";
import { isSession } from "./stream/session-file.ts";

const attached = shape({
  v: oneOf(1),
  id: isText,
  /**
   * `here`: the process `owner` shows the person the session. `kept`: the person has left, and keeps the task. `done`: the person says
   * that the work is done, which counts until a check says otherwise. `back`: the agent goes on in `session`.
   */
  state: oneOf("here", "kept", "done", "back"),
  owner: isText,
  /** The program on the screen, once it has started; it may outlive the process that started it. */
  screen: optional(isText),
  /** Since when it says so (epoch ms). */
  since_ms: isCount,
  /** The submission of the task. A task that was put back for the person gets it with its next claim. */
  submission: optional(isText),
  /** The session of an ended task that was put back for the person: its next run goes on in it. */
  session: optional(isSession),
});
export type Attached = Of<typeof attached>;

/** How long a task waits when it is unknown whether a person has it (ms). */
const AGAIN_MS = 60_000;

export function attachedIn(stateDir: string): Documents<Attached> {
  return new Documents(stateDir, "attached", attached);
}

/** Whether the document says the same as then. */
export function isSame(now: Attached | undefined, then: Attached): boolean {
  return now?.state === then.state && now.owner === then.owner && now.since_ms === then.since_ms;
}

/** The gate in the names of tasks that wait for their person: see stage "hold" in `names.ts`. */
function attachedHold(id: string): string {
  const hash = createHash("sha256").update(id, "utf8").digest("hex");
  return `${ATTACHED_GATE}${hash.slice(0, 16)}`;
}

/** The lease that the person's program has in its environment. */
export function leaseOfPerson(owner: string): string {
  return `attach-${owner}`;
}

/** Whether the person's process, or the program on the screen, still runs. What the program has left behind does not count. */
export function judgePerson({ owner, screen }: Attached, stateDir: string): Verdict {
  const verdict = judgeOwner(owner);
  if (verdict !== "dead") return verdict;
  if (screen !== undefined) return judgeOwner(screen);
  try {
    // It died before it could note the program.
    const pids = findTree(leaseOfPerson(owner), undefined, undefined, stateDir);
    return pids.length > 0 ? "alive" : "dead";
  } catch {
    // No descriptors are left.
    return "unknown";
  }
}

/** @returns undefined when the document holds nothing back */
export function gateOfPerson({
  id,
  state,
  owner,
  since_ms: sinceMs,
}: Attached): ClosedGate | undefined {
  const since = `since ${new Date(sinceMs).toISOString()}`;
  if (state === "here") {
    const why = `a person works on it (attach, pid ${parseOwner(owner)?.pid}) ${since}`;
    const todo = `wait until the person leaves it; if that was on a machine that is gone: mailchute attach ${id} --keep`;
    return closedGate(attachedHold(id), why, todo);
  }
  if (state !== "kept") return undefined;
  const todo = `mailchute attach ${id}, or give it back: mailchute attach ${id} --done or --go-on`;
  return closedGate(attachedHold(id), `a person keeps it ${since}`, todo);
}

/** What a worker knows of the person at a task that it has claimed. */
export interface PersonWatch {
  /** What the person has said; undefined when there is no person. */
  readonly document: Attached | undefined;
  /** Why a run must end; undefined while no person wants the task. */
  wanted(): Deferred | undefined;
}

/**
 * Call this after the claim, before anything is made for the run.
 * @param submission of the claim
 * @returns why the run must not begin
 */
export async function lookForPerson(
  stateDir: string,
  id: string,
  submission: string,
): Promise<PersonWatch | Deferred> {
  const documents = attachedIn(stateDir);
  const wanted = (): Deferred | undefined => {
    const document = documents.read(id);
    const gate = document && gateOfPerson(document);
    return gate && { kind: "deferred", message: gate.why, delayMs: 0, hold: gate.gate };
  };
  let document: Attached | undefined;
  try {
    document = documents.load(id);
    if (document !== undefined && document.submission !== submission)
      document = await documents.update(id, (now) => now && asOf(now, submission));
  } catch (error) {
    const message = `cannot tell whether a person has it: ${messageOf(error)}`;
    return { kind: "deferred", message, delayMs: AGAIN_MS };
  }
  const isOurs = document?.submission === submission;
  return wanted() ?? { document: isOurs ? document : undefined, wanted };
}

/**
 * The document when this submission of the task is claimed. A task that was put back for the person gets its submission here. One that
 * was put back by others (`cancel --requeue`) begins anew, and still waits for the person; but what the person said was about the
 * earlier one.
 */
function asOf(now: Attached, submission: string): Attached {
  if (now.submission === undefined) return { ...now, submission };
  if (gateOfPerson(now) === undefined) return now;
  const { session: _ofEarlier, ...rest } = now;
  return { ...rest, submission };
}
