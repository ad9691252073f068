/** The name of a state tree in a cluster. A copy of a tree gets another one: its tasks are others, although they have the same ids. */
import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { loadDocument, replaceDocument } from "../../../host/documents.ts";
import { isOtherTree, treeIdOf } from "../../../host/tree-id.ts";
import { isTree } from "../protocol/dispatch.ts";
import { clusterDir } from "./cluster-dir.ts";

interface TreeDocument {
  tree: string;
  /** Device and inode of the directory that got this name. */
  of: string | null;
}

/** @throws a system error */
export function treeName(stateDir: string): string {
  const path = join(clusterDir(stateDir), "tree.json");
  const known = loadDocument<TreeDocument>(path);
  if (typeof known?.tree === "string" && isTree(known.tree) && !isOtherTree(known.of, stateDir))
    return known.tree;
  const tree = randomBytes(4).toString("hex");
  replaceDocument(path, { tree, of: treeIdOf(stateDir) } satisfies TreeDocument, {
    missingMax: 2,
    isDurable: true,
  });
  return tree;
}
