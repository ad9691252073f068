/** Finds the control groups of this process and reads their numbers. Changes nothing. */
import { dirname, join } from "node:path";
import { readProc } from "./read-proc.ts";

/**
 * Directories of the version 2 hierarchy, or of the version 1 hierarchy that has this controller: our own group first, then the
 * groups above it. Some may not exist: inside a container the path may be the host's, and only the root of the mounted hierarchy is
 * ours.
 * @throws the system's error when it cannot be read now
 */
export function groupDirs(controller: "pids" | "memory"): string[] {
  const groups = readProc("/proc/self/cgroup")?.toString() ?? "";
  const dirs: string[] = [];
  for (const line of groups.split("\n")) {
    const [, controllers, ...rest] = line.split(":");
    const root =
      controllers === ""
        ? "/sys/fs/cgroup"
        : controllers?.split(",").includes(controller) === true
          ? join("/sys/fs/cgroup", controller)
          : undefined;
    if (root === undefined) continue;
    for (let path = rest.join(":"); ; path = dirname(path)) {
      dirs.push(join(root, path));
      if (path === "/" || path === "." || path === "") break;
    }
  }
  return dirs;
}

/** @returns undefined when the file is missing, or holds no number ("max") */
export function readGroupNumber(dir: string, file: string): number | undefined {
  const text = readProc(join(dir, file))?.toString().trim() ?? "";
  return /^\d+$/.test(text) ? Number(text) : undefined;
}

/** Reads the number with this name from a file of lines "name number". */
export function readGroupEntry(dir: string, file: string, name: string): number | undefined {
  const text = readProc(join(dir, file))?.toString() ?? "";
  const line = text.split("\n").find((one) => one.startsWith(`${name} `));
  return line === undefined ? undefined : Number(line.slice(name.length + 1));
}
