/** Decides when to pause an agent: its runs keep failing in the same way, or in a way that no other run can mend. Pure. */

import type { Failed } from "../../core/outcome.ts";
import { isCount, isText, type Of, oneOf, orNull, shape } from "../../core/shape.ts";

/** `breakers/<agent>.json`. */
export const breaker = shape({
  v: oneOf(1),
  agent: isText,
  /** How its last run failed: kind and code. */
  failure: isText,
  /** How many runs in a row failed like this. */
  count: isCount,
  /** The task of the last of these runs, and its message. */
  task_id: isText,
  message: isText,
  /** ISO 8601; null: it is not paused. */
  paused_at: orNull(isText),
});
export type BreakerDocument = Of<typeof breaker>;

/** The agent is paused after the same failure this many times in a row. */
const SAME_MAX = 5;
/** How much of the text of a failure is kept (characters). */
const TEXT_MAX = 300;
/** Failures that another run cannot mend: the service does not accept the account, or the settings are wrong. */
const AT_ONCE: ReadonlySet<string> = new Set(["ErrAuth", "ErrAgentConfig"]);

/**
 * Called when a run has failed.
 * @param before the document before this run; undefined when no failure is known
 * @param nowMs epoch ms
 */
export function noteFailure(
  before: BreakerDocument | undefined,
  agent: string,
  taskId: string,
  { failure, code, message }: Pick<Failed, "failure" | "code" | "message">,
  nowMs: number,
): BreakerDocument {
  // While the agent is paused, the ends of runs that were already running change nothing.
  if (before?.paused_at != null) return before;
  const how = `${failure} ${code}`;
  const count = before?.failure === how ? before.count + 1 : 1;
  const isPaused = count >= SAME_MAX || AT_ONCE.has(code);
  return {
    v: 1,
    agent,
    failure: how,
    count,
    task_id: taskId,
    message: message.slice(0, TEXT_MAX),
    paused_at: isPaused ? new Date(nowMs).toISOString() : null,
  };
}

/** The text for people that says why the agent is paused. */
export function pauseText({ agent, count, message, task_id, paused_at }: BreakerDocument): string {
  const runs = count === 1 ? "a run" : `${count} runs in a row`;
  const last =
    count === 1 ? `of ${task_id} failed` : `failed in the same way, the last of ${task_id}`;
  return `agent ${agent} is paused since ${paused_at}: ${runs} ${last}: ${message}`;
}

/** The command that ends the pause. */
export function resumeText({ agent }: Pick<BreakerDocument, "agent">): string {
  const name = /^[\w.-]+$/.test(agent) ? agent : JSON.stringify(agent);
  return `mailchute resume --agent ${name}`;
}
