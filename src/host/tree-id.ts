/** Which state tree a path leads to: one that was moved is still itself, a copy of it is another one. */
import fs from "node:fs";
import { judge, type Verdict } from "./identity.ts";

/** Who stands in a document of a state tree. */
export interface Resident {
  place: string;
  pid: number;
  start_ticks: number;
  /** The tree it wrote this into; missing or null where that is not known. */
  tree?: string | null;
}

/** Device and inode of a state directory; null when it cannot be looked at. */
export function treeIdOf(dir: string): string | null {
  try {
    const { dev, ino } = fs.statSync(dir, { bigint: true });
    return `${dev}:${ino}`;
  } catch {
    return null;
  }
}

/** Whether both are known and differ: what cannot be told counts as the same. */
export function isOtherTree(tree: string | null | undefined, dir: string): boolean {
  if (typeof tree !== "string") return false;
  const here = treeIdOf(dir);
  return here !== null && here !== tree;
}

/** Whether a process of this system lives that has written this document, and into another tree: this one is a copy. */
export function livesElsewhere(resident: Resident, dir: string): boolean {
  // On other hosts the same tree has other numbers.
  return judgeResident(resident) === "alive" && isOtherTree(resident.tree, dir);
}

/** Like `judge`, for who stands in a document of this tree: who lives in another one is dead for it. */
export function judgeIn(dir: string, resident: Resident): Verdict {
  return livesElsewhere(resident, dir) ? "dead" : judgeResident(resident);
}

function judgeResident({ place, pid, start_ticks }: Resident): Verdict {
  return judge({ place, pid, startTicks: start_ticks });
}
