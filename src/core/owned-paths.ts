/**
 * The files that a task reads and writes (`owns`), and whether two tasks conflict over them. Pure. A path stands for itself and all
 * below it; `*` and `?` stand for characters of one name, `**` for any number of folders.
 */

/** Paths relative to the top of the repository. A path in `write` may also be read. */
export interface OwnedPaths {
  read?: string[];
  write?: string[];
}

/** The paths that a task claims, and the folder that leads to their repository. */
interface OwnClaim {
  /** As the task gives it: `metadata.worktree` or `cwd`; "" for neither. */
  cwd: string;
  read: string[];
  write: string[];
}

/** A list holds at most this many paths. */
export const OWNED_MAX = 256;

/** A text that is the same for tasks with the same claim; undefined for a task without one. */
export function ownsKeyOf({
  owns,
  cwd,
  metadata,
}: {
  owns?: OwnedPaths;
  cwd?: string;
  metadata?: Record<string, unknown>;
}): string | undefined {
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

/** Two paths over which two claims of one repository conflict, that of `a` first; undefined without a conflict. Reads do not conflict. */
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

/** True if the same file can match both paths. */
export function pathsMeet(a: string, b: string): boolean {
  const left = namesOf(a);
  const right = namesOf(b);
  // A path covers all files below it, so two paths overlap as soon as one of them ends.
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
 * True if some text matches both patterns, which are given as lists of parts. @param any the part that matches any number of parts
 * @param isWhole true: both must end together; false: one of them may be longer
 */
function align(
  left: readonly string[],
  right: readonly string[],
  any: string,
  isSame: (one: string, other: string) => boolean,
  isWhole = false,
): boolean {
  /** The row for i + 1: `below[j]` says whether the patterns match from part i + 1 on the left and part j on the right. */
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
