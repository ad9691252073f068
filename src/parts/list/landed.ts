/** Decides whether the work of an item has landed. No other file decides this. Pure. */

import { landingIdOf } from "../../core/landing.ts";
import type { Note } from "./notes.ts";

/** The state of a task in the trays or the journal. */
export type TaskStanding =
  | { state: "waiting" | "running" }
  /** The task succeeded. `isLandingPending`: its record says that its work must still be merged. */
  | { state: "completed"; at: number; isLandingPending: boolean }
  | { state: "failed"; reason: string }
  /** The task existed, but its record is gone, and the journal does not say how it ended. */
  | { state: "lost" };

export type WorkStanding =
  | { state: "waiting" | "running" }
  | { state: "landed"; at: number }
  | { state: "failed"; reason: string };

/** The state of the note's item; undefined when there is no trace of its task. */
export function standingOfNote(
  note: Pick<Note, "id" | "landed_at">,
  look: (id: string) => TaskStanding | undefined,
): WorkStanding | undefined {
  const standing = workStanding(note.id, look);
  // Retention may have removed the record of a task that has landed.
  if (standing === undefined && note.landed_at !== null)
    return { state: "landed", at: note.landed_at };
  return standing;
}

/**
 * Without a landing task, the work has landed when its task is completed. With one, the task `<id>.land` must also be completed.
 * @param look returns the state of a task; undefined when there is no trace of it
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
