/** Finds the session that the newest run of an ended task has left, so that `continue` can go on in it. Reads only. */
import { type SessionDocument, sessionOfRun } from "../agents/stream/session-file.ts";
import type { StateTree } from "../core/state-tree.ts";
import { findRun, type TaskPlace } from "./find-task.ts";
import { readJsonObject } from "./scan.ts";

/** Only coding agents leave sessions, and they are kept as long as the task's runs. */
export type Session = SessionDocument & { session_id: string };

export function sessionOfTask(tree: StateTree, place: TaskPlace): Session | undefined {
  const run = findRun(tree, place.id, place, readJsonObject(place.path));
  const session = run === undefined ? undefined : sessionOfRun(run);
  return typeof session?.session_id === "string" ? (session as Session) : undefined;
}
