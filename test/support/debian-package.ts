/** Installs or unpacks a Debian package that a long search needs, where this user may. */
import { spawnSync } from "node:child_process";
import fs from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

/** What test harnesses take for "skipped". */
export const EXIT_SKIPPED = 77;

/** @returns whether `program` can be run, after an attempt to install `name` where it is missing */
export function hasDebianPackage(name: string, program: string): boolean {
  const isThere = (): boolean =>
    spawnSync("sh", ["-c", `PATH="$PATH:/usr/sbin:/sbin"; command -v ${program}`]).status === 0;
  if (isThere()) return true;
  if (process.getuid?.() !== 0) return false;
  const apt = (...args: string[]): boolean =>
    spawnSync("apt-get", args, {
      stdio: "ignore",
      env: { ...process.env, DEBIAN_FRONTEND: "noninteractive" },
    }).status === 0;
  // The lists of a new machine are empty.
  if (!apt("install", "-y", "--no-install-recommends", name)) {
    apt("update");
    apt("install", "-y", "--no-install-recommends", name);
  }
  return isThere();
}

const UNPACKED = fileURLToPath(new URL("../../node_modules/.debian", import.meta.url));

/**
 * Unpacks a package below `node_modules`, without installing it: no service starts. @returns the folder; undefined where there is no
 * apt, or it cannot load the package
 */
export function unpackDebianPackage(name: string): string | undefined {
  const dir = join(UNPACKED, name);
  if (fs.existsSync(dir)) return dir;
  const staged = `${dir}.${process.pid}`;
  for (const one of [UNPACKED, staged]) if (!fs.existsSync(one)) fs.mkdirSync(one);
  try {
    const load = (): boolean =>
      spawnSync("apt-get", ["download", name], { cwd: staged, stdio: "ignore" }).status === 0;
    if (!load() && (spawnSync("apt-get", ["update"], { stdio: "ignore" }).status !== 0 || !load()))
      return undefined;
    const [file = ""] = fs.readdirSync(staged);
    const { status } = spawnSync("dpkg", ["-x", join(staged, file), join(staged, "files")]);
    if (status !== 0) return undefined;
    // Another process may have been first: theirs is as good.
    if (!fs.existsSync(dir)) fs.renameSync(join(staged, "files"), dir);
    return dir;
  } finally {
    fs.rmSync(staged, { recursive: true, force: true });
  }
}
