/** `cluster/draining`: while this file exists, this machine takes no tasks of others, also after a restart. */
import fs from "node:fs";
import { join } from "node:path";
import { makeDirs } from "../../../host/make-dirs.ts";
import { writeRegularText } from "../../../host/regular-file.ts";
import { clusterDir } from "./cluster-dir.ts";

const pathIn = (stateDir: string): string => join(clusterDir(stateDir), "draining");

export function isDraining(stateDir: string): boolean {
  return fs.existsSync(pathIn(stateDir));
}

/** @throws a system error */
export function setDraining(stateDir: string, isOn: boolean): void {
  if (!isOn) fs.rmSync(pathIn(stateDir), { force: true });
  else {
    makeDirs(clusterDir(stateDir));
    writeRegularText(pathIn(stateDir), "");
  }
}
