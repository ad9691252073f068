/** Where a state tree has its schedules. In a file of its own, so that the part need not load the code that reads them. */
import { join } from "node:path";

export function schedulesDir(stateDir: string): string {
  return join(stateDir, "schedules");
}
