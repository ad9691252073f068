/** Where a state tree has its schedules. What the part asks again and again must not bring their reading with it. */
import { join } from "node:path";

export function schedulesDir(stateDir: string): string {
  return join(stateDir, "schedules");
}
