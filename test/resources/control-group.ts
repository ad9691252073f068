/** A control group for what a test starts, with a limit that can be lifted. Needs root. */
import fs from "node:fs";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import { waitFor } from "../support/wait-for.ts";

export type Controller = "pids" | "memory";

const ROOT = "/sys/fs/cgroup";
/** The file that sets the limit, and what it holds for "none", by version. */
const LIMITS = {
  pids: { 1: ["pids.max", "max"], 2: ["pids.max", "max"] },
  memory: { 1: ["memory.limit_in_bytes", "-1"], 2: ["memory.max", "max"] },
} as const;
let count = 0;

/** Where groups with this controller are made; undefined: nowhere. */
function placeOf(controller: Controller): { dir: string; version: 1 | 2 } | undefined {
  const dir = join(ROOT, controller);
  if (fs.existsSync(join(dir, "cgroup.procs"))) return { dir, version: 1 };
  const handedOn = join(ROOT, "cgroup.subtree_control");
  const names = fs.existsSync(handedOn) ? fs.readFileSync(handedOn, "utf8").trim().split(" ") : [];
  return names.includes(controller) ? { dir: ROOT, version: 2 } : undefined;
}

/** Why there can be none on this machine; undefined: there can. */
export function whyNoGroup(controller: Controller): string | undefined {
  const place = placeOf(controller);
  try {
    const dir = join(place?.dir ?? "", `mailchute-try-${process.pid}`);
    if (place !== undefined) {
      fs.mkdirSync(dir);
      fs.rmdirSync(dir);
      return undefined;
    }
  } catch {
    // Not ours to make.
  }
  return `no control group with ${controller} that can be written (root)`;
}

export interface ControlGroup {
  /** Puts what it starts into the group. */
  prefix: string[];
  /** @param max processes, or bytes; undefined: as much as it likes */
  limit(max: number | undefined): void;
}

export function controlGroup(controller: Controller): ControlGroup {
  count += 1;
  const place = placeOf(controller);
  if (place === undefined) throw new Error(`no control groups with ${controller}`);
  const dir = join(place.dir, `mailchute-${process.pid}-${count}`);
  fs.mkdirSync(dir);
  onTestFinished(() =>
    waitFor(
      () => {
        try {
          fs.rmdirSync(dir);
          return true;
        } catch {
          return false;
        }
      },
      { what: `the end of all in ${dir}` },
    ).then(() => {}),
  );
  const [file, none] = LIMITS[controller][place.version];
  // What goes to a swap device instead is not short of anything.
  for (const [name, value] of [
    ["memory.swappiness", "0"],
    ["memory.swap.max", "0"],
  ] as const)
    if (fs.existsSync(join(dir, name))) fs.writeFileSync(join(dir, name), value);
  return {
    prefix: ["sh", "-c", `echo $$ > ${dir}/cgroup.procs && exec "$@"`, "sh"],
    limit: (max) => fs.writeFileSync(join(dir, file), max === undefined ? none : String(max)),
  };
}
