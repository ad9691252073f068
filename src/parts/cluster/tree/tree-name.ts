/**
 * The name of a state tree in a cluster: the name of its machine and an own part. A copy of a tree gets another name, because its
 * tasks are different ones with the same ids.
 */
import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { loadDocument, replaceInTree } from "../../../host/documents.ts";
import { isOtherTree, treeIdOf } from "../../../host/tree-id.ts";
import { clusterDir } from "./cluster-dir.ts";

/** The own part of the name, which is kept in a file: see `Dispatch`. */
const OWN = /^[a-z0-9]{8}$/;

interface TreeDocument {
  tree: string;
  /** Device and inode of the directory that got this name. */
  of: string | null;
}

/** @param machine the name of the machine. @throws a system error */
export function treeName(stateDir: string, machine: string): string {
  return `${machine}.${ownName(stateDir)}`;
}

function ownName(stateDir: string): string {
  const path = join(clusterDir(stateDir), "tree.json");
  const known = loadDocument<TreeDocument>(path);
  if (typeof known?.tree === "string" && OWN.test(known.tree) && !isOtherTree(known.of, stateDir))
    return known.tree;
  const tree = randomBytes(4).toString("hex");
  replaceInTree(stateDir, path, { tree, of: treeIdOf(stateDir) } satisfies TreeDocument, {
    isDurable: true,
  });
  return tree;
}
