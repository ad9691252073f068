/**
 * A systemd of a user, started for a test in a mount namespace of its own, on machines that were not booted with systemd. It needs
 * root, and Debian's packages systemd and util-linux.
 */
import { spawn, spawnSync } from "node:child_process";
import fs from "node:fs";
import { join } from "node:path";
import type { OnEnd } from "./temp-dir.ts";
import { waitFor } from "./wait-for.ts";

const PROGRAM = "/lib/systemd/systemd";
const CGROUPS = "/sys/fs/cgroup";

export interface UserSystemd {
  /** Put before a command, it runs where this systemd can be asked. */
  prefix: string[];
  env: Record<string, string>;
  /** Where its units lie. */
  unitDir: string;
  /** `systemctl --user WORDS`: what it printed. */
  ctl: (this: void, ...words: string[]) => string;
}

/** Why none can be started here. */
export function whyNoSystemd(): string | undefined {
  if (process.getuid?.() !== 0) return "a systemd of our own needs root";
  if (!fs.existsSync(PROGRAM)) return "there is no systemd: apt-get install systemd";
  const tried = spawnSync("unshare", ["-m", "true"]);
  return tried.status === 0 ? undefined : "unshare makes no mount namespace here";
}

/** @param dir a folder for it, which must not be long: sockets lie in it */
export async function startUserSystemd(dir: string, onEnd: OnEnd): Promise<UserSystemd> {
  const home = join(dir, "home");
  const runtime = join(dir, "rt");
  fs.mkdirSync(home, { recursive: true });
  fs.mkdirSync(runtime, { mode: 0o700 });
  const roots = ["systemd", "unified"].map((name) => join(CGROUPS, name)).filter(fs.existsSync);
  const groups = (roots.length > 0 ? roots : [CGROUPS]).map((root) =>
    join(root, `mailchute-test-${process.pid}`),
  );
  for (const group of groups) fs.mkdirSync(group, { recursive: true });
  const env = { HOME: home, XDG_RUNTIME_DIR: runtime, XDG_CONFIG_HOME: join(home, ".config") };
  // It starts only where it finds that the machine was booted with systemd.
  const script = `
mount -t tmpfs tmpfs /run && mkdir -p /run/systemd/system
for group in "$@"; do echo $$ > "$group/cgroup.procs"; done
exec ${PROGRAM} --user`;
  const child = spawn("unshare", ["-m", "sh", "-ec", script, "sh", ...groups], {
    env: { PATH: process.env["PATH"], ...env },
    stdio: ["ignore", "ignore", "inherit"],
  });
  const prefix = ["nsenter", "-t", String(child.pid), "-m", "--"];
  const ctl = (...words: string[]): string =>
    spawnSync("nsenter", [...prefix.slice(1), "systemctl", "--user", ...words], {
      env: { ...process.env, ...env },
      encoding: "utf8",
    }).stdout.trim();
  onEnd(async () => {
    ctl("exit");
    await waitFor(() => child.exitCode !== null || child.signalCode !== null, {
      what: "the end of systemd",
    });
    for (const group of groups) removeGroups(group);
  });
  await waitFor(() => ["running", "degraded"].includes(ctl("is-system-running")), {
    what: "systemd",
    timeoutMs: 20_000,
  });
  return { prefix, env, ctl, unitDir: join(home, ".config/systemd/user") };
}

/** Their files go with them. */
function removeGroups(dir: string): void {
  for (const entry of fs.readdirSync(dir, { withFileTypes: true }))
    if (entry.isDirectory()) removeGroups(join(dir, entry.name));
  fs.rmdirSync(dir);
}
