/** Where a state tree keeps what this part must not forget. */
import { join } from "node:path";

export function clusterDir(stateDir: string): string {
  return join(stateDir, "cluster");
}
