/** The folder in which a state tree keeps the files of this part. */
import { join } from "node:path";

export function clusterDir(stateDir: string): string {
  return join(stateDir, "cluster");
}
