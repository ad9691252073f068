/** Installs a Debian package that a long search needs, where this user may. */
import { spawnSync } from "node:child_process";

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
