/**
 * The name of a state tree in a cluster: the name of its machine and an own part. A copy of a tree gets another name, because its
 * tasks are different ones with the same ids.
 */
import fs from "node:fs";
import { join } from "node:path";
import { makeDirs } from "../../../host/make-dirs.ts";
import { ownIdOf } from "../../../host/own-id.ts";
import { clusterDir } from "./cluster-dir.ts";

/** The length of the own part of the name, which is kept in a file: see `Dispatch`. */
const OWN_CHARS = 8;

/** @param machine the name of the machine. @throws a system error */
export function treeName(stateDir: string, machine: string): string {
  const dir = clusterDir(stateDir);
  makeDirs(dir);
  const path = join(dir, "tree.json");
  const file = { path, key: "tree", chars: OWN_CHARS, stagingDir: join(dir, ".tmp") };
  return `${machine}.${ownIdOf(fs.realpathSync(stateDir), file)}`;
}
