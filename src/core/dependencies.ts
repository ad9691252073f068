/** The tasks and nodes of the plan that a task waits for, and how far each must be. Pure. */
import { isObject } from "./json-object.ts";
import { foldId } from "./names.ts";

/** An id, or an id with the status that the task must have reached. */
export type DependencyField = string | { id: string; required_status?: RequiredStatus };

/** `done`: it has completed. `terminal`: it has ended, well or not. */
export type RequiredStatus = "done" | "terminal";

export interface Dependency {
  id: string;
  required: RequiredStatus;
}

/**
 * All dependencies of a task or its JSON: those in `metadata.dependencies`, `dependencies` and `depends_on`. Each is a list, or one of
 * them. What is no dependency is left out.
 */
export function dependencyFieldsOf(task: Readonly<Record<string, unknown>>): DependencyField[] {
  const { metadata, dependencies, depends_on: same } = task;
  const inside = isObject(metadata) ? metadata["dependencies"] : undefined;
  return [inside, dependencies, same].flat().flatMap((one): DependencyField[] => {
    if (typeof one === "string") return [one];
    // A dependency in the plan may be written with `node`, too.
    const id = isObject(one) ? (one["id"] ?? one["node"]) : undefined;
    if (typeof id !== "string") return [];
    const isLess = isObject(one) && one["required_status"] === "terminal";
    return [isLess ? { id, required_status: "terminal" } : id];
  });
}

/** Reads the field `metadata.dependencies`. Of two ids that differ only in case, it keeps the stricter one. */
export function readDependencies(fields: readonly DependencyField[] = []): Dependency[] {
  if (fields.length === 0) return [];
  const found = new Map<string, Dependency>();
  for (const field of fields) {
    const one = readDependency(field);
    const key = foldId(one.id);
    const before = found.get(key);
    found.set(key, before?.required === "done" ? { ...one, required: "done" } : one);
  }
  return [...found.values()];
}

function readDependency(field: DependencyField): Dependency {
  if (typeof field === "string") return { id: field, required: "done" };
  return { id: field.id, required: field.required_status ?? "done" };
}

/** Why a task was skipped. */
export interface Skip {
  /** The dependency that failed. */
  cause: string;
  /** The first task that failed by itself: the cause, or why the cause was skipped. */
  root: string;
  /** How many steps it is from the root. A dependent of the root is one step from it. */
  depth: number;
  /** The ids from the root to the cause. Of a long chain, it holds only the first few and the last few. */
  chain: string[];
}

/** How many ids of each end of a chain are kept: whole chains of ten thousand tasks would take half a gigabyte. */
const CHAIN_END_MAX = 8;
/** How many ids of a chain an error names. */
const NAMED_MAX = 5;

/**
 * Why the dependents of a failed task are skipped.
 * @param cause the failed task @param itself why this task was skipped; undefined if it was not
 */
export function skipOf(cause: string, itself: Skip | undefined): Skip {
  if (itself === undefined) return { cause, root: cause, depth: 1, chain: [cause] };
  const chain = [...itself.chain, cause];
  if (chain.length > 2 * CHAIN_END_MAX) chain.splice(CHAIN_END_MAX, 1);
  return { cause, root: itself.root, depth: itself.depth + 1, chain };
}

/** `skipped, because build failed (build > lint > test)`. */
export function skipText({ root, depth, chain }: Skip): string {
  const what = `skipped, because ${root} failed`;
  if (depth === 1) return what;
  const isLong = depth > NAMED_MAX;
  const shown = isLong ? [...chain.slice(0, 2), "...", ...chain.slice(-2)] : chain;
  return `${what} (${shown.join(" > ")})`;
}
