/**
 * Notes of the tasks of coding agents that are in work: `exits/<id>.json` of the state tree, written before the task is accepted. So a
 * process that starts after a crash knows which exits it must report, even of tasks that ended while no supervisor ran.
 */
import { isText, type Of, oneOf, optional, orElse, orNull, shape } from "../../../core/shape.ts";
import { Documents } from "../../../host/document-store.ts";

const runNote = shape({
  v: oneOf(1),
  task: isText,
  /** The name of the agent in the settings. */
  agent: isText,
  /** The agent that runs the task, in lower case, once it is known. It may have been spawned from `agent`. */
  name: optional(isText),
  /** Submission and attempt of the last run that was seen; null if none was seen. */
  run: orElse(orNull(isText), null),
});
export type RunNote = Of<typeof runNote>;

/** By the id of the task. */
export const runNotes = (stateDir: string, isDurable = false): Documents<RunNote> =>
  new Documents(stateDir, "exits", runNote, { isDurable });
