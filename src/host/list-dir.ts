/** Lists a directory that need not be there. */
import fs from "node:fs";

/** Its names; none when it cannot be listed. */
export function listDir(path: string): string[] {
  try {
    return fs.readdirSync(path);
  } catch {
    return [];
  }
}
