/** Limits of the system that a test lowers for what it starts, and for what runs already. Needs root. */
import { execFileSync, spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";

let lastUid = 100_000 + (process.pid % 50_000) * 4;

/** A user of its own: `ulimit -u` counts all that a user runs. */
export function freshUid(): number {
  lastUid += 1;
  return lastUid;
}

/** Whether this process may become other users and change the limits of others; says so on stderr when it may not. */
export function canLimit(): boolean {
  const launcher = fileURLToPath(new URL("../../bin/mailchute.js", import.meta.url));
  if (process.platform === "linux" && process.getuid?.() === 0) {
    const uid = freshUid();
    const args = [launcher, "--version"];
    const isRunnable = spawnSync(process.execPath, args, { uid, gid: uid, cwd: "/" }).status === 0;
    if (isRunnable && spawnSync("prlimit", ["--version"]).status === 0) return true;
  }
  process.stderr.write(
    "\nSKIPPED: tests of limits need root, prlimit, and a checkout that other users can run\n",
  );
  return false;
}

/** A program that lowers these limits for itself, and becomes what it is given. @param limits as for `ulimit`: "-u 84" */
export function withLimits(limits: string): string[] {
  return ["bash", "-c", `ulimit -c 0 ${limits} && exec "$@"`, "bash"];
}

/**
 * Lowers the soft limit of a process that runs.
 * @param limit as prlimit names it: "nproc"
 * @returns puts it back
 */
export function lowerLimit(pid: number, uid: number, limit: string, to: number): () => void {
  // Its own user may, without any privilege.
  const prlimit = (...args: string[]): string =>
    execFileSync("prlimit", [`--pid=${pid}`, ...args], { uid, gid: uid, stdio: "pipe" })
      .toString()
      .trim();
  const before = prlimit(`--${limit}`, "--raw", "--noheadings", "--output=SOFT");
  prlimit(`--${limit}=${to}:`);
  return () => void prlimit(`--${limit}=${before}:`);
}
