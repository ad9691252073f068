/** Real control groups of version 2, without controllers: enough to enter, to count and to end. */
import fs from "node:fs";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import { groupSystem } from "../../src/host/run-groups.ts";
import { waitFor } from "./wait-for.ts";

/** A group below our own, which goes with the test; undefined where none can be made: that needs root. */
export function realGroups(): string | undefined {
  const { mount, path } = groupSystem();
  if (mount === undefined || process.getuid?.() !== 0) return undefined;
  const base = join(mount, path, `mailchute-try-${process.pid}`);
  try {
    fs.mkdirSync(base);
  } catch {
    return undefined;
  }
  onTestFinished(async () => {
    fs.writeFileSync(join(base, "cgroup.kill"), "1");
    const groups = fs.readdirSync(base).filter((name) => !name.includes("."));
    await waitFor(() => [...groups.map((name) => join(base, name)), base].every(isRemoved), {
      what: "the end of the groups",
    });
  });
  return base;
}

function isRemoved(dir: string): boolean {
  try {
    fs.rmdirSync(dir);
  } catch {
    // A process in it is not quite gone, or it went before.
  }
  return !fs.existsSync(dir);
}
