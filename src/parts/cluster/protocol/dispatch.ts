/** A dispatch is one run of a task that its tree has sent to other machines. Pure. */
import { createHash } from "node:crypto";
import { ID_CHARS_MAX } from "../../../core/limits.ts";
import { CLUSTER_GATE, isId, type ProcessingName } from "../../../core/names.ts";
import type { AgentSettings } from "../../../core/settings.ts";

/**
 * A run that is sent: the tree, and the parts of its name in `processing/`. Another run of the task has another number, and a task
 * after a retry by hand has another submission. So the dispatch is the fence: its result can settle only this name.
 */
export interface Dispatch {
  /** The tree that has the task: the name of its machine, a dot, and 8 letters and digits. Only that machine may publish under it. */
  tree: string;
  task: string;
  submission: string;
  attempt: number;
}

/** The form of a target in subjects of the broker and in gates. */
const TARGET = /^[a-z0-9][a-z0-9-]{0,31}$/;
const TREE = /^[a-z0-9][a-z0-9-]{0,31}\.[a-z0-9]{8}$/;
const HASH_CHARS = 32;

/** Whether this text can be a target: the name of one machine, or of all machines that serve it. */
export function isTarget(text: string): boolean {
  return TARGET.test(text);
}

export function isTree(text: string): boolean {
  return TREE.test(text);
}

/**
 * The only name of a dispatch: its job and its result at the broker have it, and the task that a machine makes of it. Two
 * dispatches never share a name, because two submissions never do.
 */
export function dispatchId({ tree, task, submission, attempt }: Dispatch): string {
  const id = `${tree}.${task}.${submission}.${attempt}`;
  if (id.length <= ID_CHARS_MAX && isId(id)) return id;
  const hash = createHash("sha256").update(`${task}@${submission}`).digest("hex");
  return `${tree}.${hash.slice(0, HASH_CHARS)}.${attempt}`;
}

/** The target that says at which machines the tasks of a remote agent run. */
export function targetOf({ where = "any" }: Pick<AgentSettings, "where">): string {
  return where;
}

/** The gate at which a task waits for its result: see stage "hold" in `names.ts`. */
export function clusterGate(target: string): string {
  return `${CLUSTER_GATE}${target}`;
}

/** The dispatch and the target of a name in `processing/`; undefined when it does not wait for a result of another machine. */
export function readHeld(
  tree: string,
  { id, submission, attempt, stage, token, isBatch }: ProcessingName,
): { dispatch: Dispatch; target: string } | undefined {
  if (stage !== "hold" || isBatch === true || !token.startsWith(CLUSTER_GATE)) return undefined;
  const target = token.slice(CLUSTER_GATE.length);
  if (!isTarget(target)) return undefined;
  return { dispatch: { tree, task: id, submission, attempt }, target };
}
