/** Says whether the work of an item has landed. This is the one place that decides it. Pure. */

import { landingIdOf } from "../../core/landing.ts";
import type { Note } from "./notes.ts";

/** How far a task is, as the trays or the journal say. */
export type TaskStanding =
  | { state: "waiting" | "running" }
  /** Ended well. `isLandingPending`: its record says that its work is still to be merged. */
  | { state: "completed"; at: number; isLandingPending: boolean }
  | { state: "failed"; reason: string }
  /** It was there once: its record is gone, and the journal does not say how it ended. */
  | { state: "lost" };

export type WorkStanding =
  | { state: "waiting" | "running" }
  | { state: "landed"; at: number }
  | { state: "failed"; reason: string };

/** How far the item of this note is; undefined when there is no trace of its task. */
export function standingOfNote(
  note: Pick<Note, "id" | "landed_at">,
  look: (id: string) => TaskStanding | undefined,
): WorkStanding | undefined {
  const standing = workStanding(note.id, look);
  // The record of a task that has landed may be gone.
  if (standing === undefined && note.landed_at !== null)
    return { state: "landed", at: note.landed_at };
  return standing;
}

/**
 * A task without a landing has landed when it is completed; one with a landing when the task `<id>.land` is completed, too.
 * @param look how far a task is; undefined when there is no trace of it
 */
function workStanding(
  id: string,
  look: (id: string) => TaskStanding | undefined,
): WorkStanding | undefined {
  const task = look(id);
  if (task === undefined) return undefined;
  if (task.state === "lost")
    return { state: "failed", reason: "its record is gone, and how it ended is not known" };
  if (task.state !== "completed") return task;
  const landing = look(landingIdOf(id));
  if (landing === undefined)
    return task.isLandingPending ? { state: "waiting" } : { state: "landed", at: task.at };
  if (landing.state === "completed") return { state: "landed", at: landing.at };
  if (landing.state === "failed")
    return { state: "failed", reason: `it did not land: ${landing.reason}` };
  return landing.state === "lost" ? { state: "waiting" } : landing;
}
