/**
 * The files that a task reads and writes (`owns`), and whether two tasks meet there. Pure. A path stands for itself and all below it; `*`
 * and `?` stand for characters of one name, `**` for any number of folders.
 */
import type { Task } from "./task.ts";

/** Paths from the top of the repository. What is written is read, too. */
export interface OwnedPaths {
  read?: string[];
  write?: string[];
}

/** Where the paths of a task begin, and which they are. */
interface OwnClaim {
  /** As the task gives it: `metadata.worktree` or `cwd`; "" for neither. */
  cwd: string;
  read: string[];
  write: string[];
}

/** Most paths of a list. */
export const OWNED_MAX = 256;

/** A text that is the same for tasks with the same claim; undefined for a task without one. */
export function ownsKeyOf({
  owns,
  cwd,
  metadata,
}: Pick<Task, "owns" | "cwd" | "metadata">): string | undefined {
  const { read = [], write = [] } = owns ?? {};
  if (read.length + write.length === 0) return undefined;
  return JSON.stringify([metadata?.worktree ?? cwd ?? "", read, write]);
}

export function readOwnsKey(key: string): OwnClaim {
  const [cwd, read, write] = JSON.parse(key) as [string, string[], string[]];
  return { cwd, read, write };
}

/** Why this cannot be a path of `owns`; undefined when it can. */
export function explainBadOwned(path: string): string | undefined {
  if (path.startsWith("/")) return "it begins at the root; give it from the top of the repository";
  const names = namesOf(path);
  if (names.includes("..")) return "it leaves the repository";
  if (names.length === 0) return 'it is empty; "**" is the whole repository';
  return undefined;
}

/** The paths by which two claims of one repository meet, that of `a` first; undefined when they do not. Two that only read do not. */
export function meetAt(
  a: Pick<OwnClaim, "read" | "write">,
  b: Pick<OwnClaim, "read" | "write">,
): [string, string] | undefined {
  for (const one of [...a.write, ...a.read])
    for (const other of [...b.write, ...b.read]) {
      const isWritten = a.write.includes(one) || b.write.includes(other);
      if (isWritten && pathsMeet(one, other)) return [one, other];
    }
  return undefined;
}

/** Whether one file can lie below both. */
export function pathsMeet(a: string, b: string): boolean {
  const left = namesOf(a);
  const right = namesOf(b);
  // A path stands for all below it, so they meet as soon as one of them ends.
  return align(left, right, "**", (one, other) =>
    align(Array.from(one), Array.from(other), "*", sameChar, true),
  );
}

function namesOf(path: string): string[] {
  return path.split("/").filter((name) => name !== "" && name !== ".");
}

function sameChar(one: string, other: string): boolean {
  return one === other || one === "?" || other === "?";
}

/**
 * Whether two rows of parts have a common reading. @param any the part that stands for any number of parts
 * @param isWhole both must end together; else one of them may go on
 */
function align(
  left: readonly string[],
  right: readonly string[],
  any: string,
  isSame: (one: string, other: string) => boolean,
  isWhole = false,
): boolean {
  /** Column j of the row before: whether the rests from there have a common reading. */
  let below: boolean[] = [];
  for (let i = left.length; i >= 0; i--) {
    const row: boolean[] = [];
    for (let j = right.length; j >= 0; j--) {
      const one = left[i];
      const other = right[j];
      if (one === undefined || other === undefined) {
        const rest = one === undefined ? right.slice(j) : left.slice(i);
        row[j] = !isWhole || rest.every((part) => part === any);
      } else if (one === any || other === any)
        row[j] = below[j] === true || row[j + 1] === true || below[j + 1] === true;
      else row[j] = isSame(one, other) && below[j + 1] === true;
    }
    below = row;
  }
  return below[0] === true;
}
