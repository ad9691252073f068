/** Identifies the state tree at a path. A tree that was moved is the same tree; a copy is another one. */
import fs from "node:fs";
import { judgeSaved, type SavedProcess, type Verdict } from "./identity.ts";

/** The process that a document of a state tree names. */
export interface Resident extends SavedProcess {
  /** The tree that it wrote the document into; missing or null when unknown. */
  tree?: string | null;
}

/** Device and inode of a state directory; null when they cannot be read. */
export function treeIdOf(dir: string): string | null {
  try {
    const { dev, ino } = fs.statSync(dir, { bigint: true });
    return `${dev}:${ino}`;
  } catch {
    return null;
  }
}

/** Whether both trees are known and differ. An unknown tree counts as the same. */
export function isOtherTree(tree: string | null | undefined, dir: string): boolean {
  if (typeof tree !== "string") return false;
  const here = treeIdOf(dir);
  return here !== null && here !== tree;
}

/** Whether the process that wrote this document lives and wrote it into another tree: this tree is then a copy. */
export function livesElsewhere(resident: Resident, dir: string): boolean {
  // On another host the same tree has other numbers.
  return judgeSaved(resident) === "alive" && isOtherTree(resident.tree, dir);
}

/** Judges the process that a document of this tree names. A process that lives in another tree counts as dead. */
export function judgeIn(dir: string, resident: Resident): Verdict {
  return livesElsewhere(resident, dir) ? "dead" : judgeSaved(resident);
}
