/** Callbacks, which run when a task has settled: the words that tasks, groups and settings share. Pure. */

/** `on_settled` runs in addition to one of the other two. */
export const CALLBACK_EVENTS = ["on_success", "on_failure", "on_settled"] as const;
export type CallbackEvent = (typeof CALLBACK_EVENTS)[number];

/** A program with its arguments, or the fields of a task. `none`: nothing, whatever the group and the settings say. */
export type Callback = string[] | Record<string, unknown> | "none";

export interface CallbackFields {
  on_success?: Callback;
  on_failure?: Callback;
  on_settled?: Callback;
}

/** The group of a callback that names no group. */
export const CALLBACK_GROUP = "callbacks";

/**
 * The type of tasks that wake an agent for its mail: the worker looks at the mail before it starts the program. Such a task has no
 * callbacks, because a callback might write mail.
 */
export const WAKE_TYPE = "wake";

/** The callbacks that run after a task ended with this status. */
export function eventsOf(status: "completed" | "failed"): CallbackEvent[] {
  return [status === "completed" ? "on_success" : "on_failure", "on_settled"];
}
