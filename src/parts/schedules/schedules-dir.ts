/** Where a state tree has its schedules. A file of its own, because the part asks often and must not load the code that reads them. */
import { join } from "node:path";

export function schedulesDir(stateDir: string): string {
  return join(stateDir, "schedules");
}
