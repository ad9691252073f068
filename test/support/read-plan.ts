/** Reads `roadmap.yaml` beside a supervisor: for some microseconds of a replacement there is none, and a reader tries again. */
import fs from "node:fs";

const LIMIT_MS = 2000;

export function readPlan(path: string): string {
  const untilMs = performance.now() + LIMIT_MS;
  for (;;) {
    try {
      return fs.readFileSync(path, "utf8");
    } catch (error) {
      const isGone = (error as NodeJS.ErrnoException).code === "ENOENT";
      if (!isGone || performance.now() > untilMs) throw error;
    }
  }
}
