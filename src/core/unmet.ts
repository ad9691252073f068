/** Explains what a task waits for. It follows chains of dependencies to the one that blocks the task. Pure. */
import { foldId } from "./names.ts";

/** The state of a dependency. */
export interface DependencyState {
  /** "moving": it may complete by itself. "stuck": it completes only after a person acts. */
  is: "met" | "moving" | "stuck";
  /** A text that follows its name and "which": "runs", "failed". */
  how: string;
  /** What the dependency itself waits for. Then these decide whether it is moving or stuck. */
  on?: readonly string[];
  /** The agent that will run it. Only set for a node that could start. */
  agent?: string;
  /** It makes plans. */
  isPlanner?: true;
}

/** No task or node has this id. */
export const UNKNOWN: DependencyState = { is: "stuck", how: "is not here" };

export interface Unmet {
  id: string;
  isStuck: boolean;
  how: string;
  /** True when this id is unknown; false when only a dependency of it is unknown. */
  isUnknown: boolean;
}

/** At most this many dependencies are named. */
const NAMED_MAX = 3;
/** One explanation looks at no more dependencies than this: of one task, and in all. */
const LOOKED_AT_MAX = 50;
const LOOKS_MAX = 300;

/**
 * Finds a few of the `dependencies` that are not met, the stuck ones first.
 * @param id the task that waits; it is needed to notice a circle
 * @returns these few, and how many are not met in all
 */
export function findUnmet(
  id: string,
  dependencies: readonly string[],
  look: (id: string) => DependencyState,
): { named: Unmet[]; count: number } {
  let looks = 0;
  const resolve = (one: string, path: readonly string[]): Found | undefined => {
    looks++;
    const standing = look(one);
    const { is, how, on } = standing;
    if (is === "met") return undefined;
    const leaf = { id: one, isStuck: is === "stuck", how, isUnknown: standing === UNKNOWN };
    if (on === undefined) return { ...leaf, end: leaf };
    const below = [...path, foldId(one)];
    let found: Found | undefined;
    for (const next of on.slice(0, LOOKED_AT_MAX)) {
      if (looks >= LOOKS_MAX) break;
      const child = below.includes(foldId(next)) ? circle(one, next) : resolve(next, below);
      if (child === undefined) continue;
      if (found === undefined || child.isStuck) found = child;
      if (child.isStuck) break;
    }
    if (found === undefined) return { ...leaf, end: leaf };
    if (found.end.id === one) return found;
    const { end } = found;
    const isNext = on.some((next) => next === end.id);
    const chain = isNext ? `waits for ${end.id}` : `waits in the end for ${end.id}`;
    const { isStuck } = found;
    return { id: one, isStuck, how: `${chain}, which ${end.how}`, isUnknown: false, end };
  };
  const looked = dependencies.slice(0, LOOKED_AT_MAX);
  const unmet = looked.map((one) => resolve(one, [foldId(id)])).filter((one) => one !== undefined);
  const named = [...unmet.filter((one) => one.isStuck), ...unmet.filter((one) => !one.isStuck)];
  return {
    named: named.slice(0, NAMED_MAX).map(({ end: _end, ...unmet }) => unmet),
    count: unmet.length + dependencies.length - looked.length,
  };
}

/** `waits for a, which failed; b, which runs; and 2 more`. */
export function describeUnmet(named: readonly Pick<Unmet, "id" | "how">[], count: number): string {
  const shown = named.map(({ id, how }) => `${id}, which ${how}`);
  const more = count - shown.length;
  return `waits for ${[...shown, ...(more > 0 ? [`and ${more} more`] : [])].join("; ")}`;
}

/** `end` is the dependency at the end of the chain, which blocks the task. */
type Found = Unmet & { end: Unmet };

function circle(one: string, next: string): Found {
  const end = { id: one, isStuck: true, how: `waits for ${next} in turn`, isUnknown: false };
  return { ...end, end };
}
