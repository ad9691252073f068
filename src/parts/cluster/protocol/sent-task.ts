/** Which fields of a task are sent to machines, and which of them a machine takes. Pure. */
import { shorten } from "../../../codec/schema.ts";
import { type DecodedTask, decodeTask } from "../../../codec/task-codec.ts";
import { ErrInvalidTask } from "../../../core/errors.ts";
import { isObject } from "../../../core/json-object.ts";
import type { Task } from "../../../core/task.ts";
import { dispatchId } from "./dispatch.ts";
import type { Job } from "./messages.ts";

/** Fields that are not sent. They matter only to the tree of the task: when and how often it runs, and what happens after it. */
const STAY = words(`
  id status attempts max_attempts retry_policy last_error claimed_by claimed_at verdict verdict_reason
  created_at updated_at operator epic_id parent_id sequence_number priority capabilities
  not_before group weight limits owns dedup_key dedup_window_ms on_success on_failure on_settled
  callback_of agents
`);

/** Fields that each machine takes: what to do, and how much it may cost. */
const TAKEN = words(`
  agent prompt payload title description timeout_ms budget traceparent
`);

const NAMES_SHOWN_MAX = 10;

/** The settings that say what a machine takes from other trees. */
export interface Accept {
  /** The names of its agents that may work for others. */
  agents: readonly string[];
  /** Fields that it takes in addition to those that each machine takes, such as `exec`. */
  fields: readonly string[];
}

function words(text: string): ReadonlySet<string> {
  return new Set(text.trim().split(/\s+/));
}

/** The fields of a task that are sent. @param agent the name of its agent at the other machine */
export function sentFields(task: Task, agent: string): Record<string, unknown> {
  const sent: Record<string, unknown> = { agent };
  for (const [name, value] of Object.entries(task))
    if (!STAY.has(name) && name !== "agent") sent[name] = value;
  const { dependencies: _stay, ...metadata } = task.metadata ?? {};
  delete sent["metadata"];
  if (Object.keys(metadata).length > 0) sent["metadata"] = metadata;
  return sent;
}

/** The task that a machine makes of a job, or why it refuses the job. The same job always gives the same text. */
export function acceptJob(job: Job, accept: Accept): DecodedTask | { refused: string } {
  const { dispatch, task } = job;
  const { agent } = task;
  if (typeof agent !== "string") return { refused: "it names no agent" };
  if (!accept.agents.includes(agent))
    return { refused: `the agent ${shorten(agent)} does not work for other machines here` };
  const strange = Object.keys(task).filter(
    (name) => !TAKEN.has(name) && (STAY.has(name) || !accept.fields.includes(name)),
  );
  if (strange.length > 0) return { refused: explainStrange(strange) };
  if (task["metadata"] !== undefined && !isObject(task["metadata"]))
    return { refused: "metadata: expected an object" };
  const id = dispatchId(dispatch);
  const { tree, task: of, submission, attempt } = dispatch;
  const origin = { tree, task: of, submission, attempt, target: job.target };
  const metadata = { ...(task["metadata"] as object | undefined), origin };
  // The tree of the task decides how often it runs.
  const text = JSON.stringify({ ...task, id, max_attempts: 1, metadata });
  try {
    return decodeTask(Buffer.from(text, "utf8"), id);
  } catch (error) {
    if (!(error instanceof ErrInvalidTask)) throw error;
    return { refused: error.message };
  }
}

function explainStrange(names: readonly string[]): string {
  const shown = names.slice(0, NAMES_SHOWN_MAX).map(shorten).join(", ");
  const more = names.length > NAMES_SHOWN_MAX ? ` and ${names.length - NAMES_SHOWN_MAX} more` : "";
  return `these fields are not taken from other machines here: ${shown}${more}`;
}
