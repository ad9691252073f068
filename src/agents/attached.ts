/**
 * A person who has taken a task over: `attached/<id>.json`. While the document says so, no run of the task begins, and one that has begun
 * ends and waits. `attach` writes it before it looks whether the task runs, and a run looks at it after it has its lease, so one of the
 * two always sees the other. Only a supervisor judges whether the person's process has died.
 */
import { createHash } from "node:crypto";
import type { ClosedGate } from "../core/documents.ts";
import { messageOf } from "../core/errors.ts";
import { closedGate } from "../core/gates.ts";
import type { AttemptOutcome } from "../core/outcome.ts";
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
  /** Since when it says so (epoch ms). */
  since_ms: isCount,
  /** The session of an ended task that was put back for the person: its next run goes on in it. */
  session: optional(isSession),
});
export type Attached = Of<typeof attached>;

/** How long a task waits that cannot be held, such as a line of a batch (ms). */
const AGAIN_MS = 60_000;

export function attachedIn(stateDir: string): Documents<Attached> {
  return new Documents(stateDir, "attached", attached);
}

/** The gate in the names of tasks that wait for their person: see stage "hold" in `names.ts`. */
function attachedHold(id: string): string {
  return `attached-${createHash("sha256").update(id, "utf8").digest("hex").slice(0, 16)}`;
}

/** The lease that the person's program has in its environment. */
export function leaseOfPerson(owner: string): string {
  return `attach-${owner}`;
}

/** Whether the person's process, or the program that it started, still runs. */
export function judgePerson({ owner }: Attached, stateDir: string): Verdict {
  const verdict = judgeOwner(owner);
  if (verdict !== "dead") return verdict;
  try {
    return findTree(leaseOfPerson(owner), undefined, undefined, stateDir).length > 0
      ? "alive"
      : "dead";
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
  if (state !== "here" && state !== "kept") return undefined;
  const since = `since ${new Date(sinceMs).toISOString()}`;
  const pid = parseOwner(owner)?.pid;
  const why =
    state === "here"
      ? `a person works on it (attach, pid ${pid}) ${since}`
      : `a person keeps it ${since}`;
  const todo =
    state === "here"
      ? "wait until the person leaves it"
      : `mailchute attach ${id}, or give it back: mailchute attach ${id} --done or --go-on`;
  return closedGate(attachedHold(id), why, todo);
}

/** What a run finds when it begins. */
export type Taken = { outcome: AttemptOutcome } | { document: Attached } | undefined;

/** @returns the outcome of a run that must not go on; else the document, if there is one */
export function takenOver(stateDir: string, id: string): Taken {
  let document: Attached | undefined;
  try {
    document = attachedIn(stateDir).load(id);
  } catch (error) {
    const message = `cannot tell whether a person has it: ${messageOf(error)}`;
    return { outcome: { kind: "deferred", message, delayMs: AGAIN_MS, hold: attachedHold(id) } };
  }
  if (document === undefined) return undefined;
  const gate = gateOfPerson(document);
  if (gate === undefined) return { document };
  const { gate: hold, why: message } = gate;
  return { outcome: { kind: "deferred", message, delayMs: AGAIN_MS, hold } };
}
