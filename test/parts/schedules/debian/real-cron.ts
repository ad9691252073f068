/** Lets Debian's own cron say when it starts the jobs of a crontab: the program of its package, under a clock of ours. */
import { spawnSync } from "node:child_process";
import fs from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { unpackDebianPackage } from "../../../support/debian-package.ts";

const SHIM = fileURLToPath(new URL("clock-shim.c", import.meta.url));
/** Folders of the system that cron reads or writes are hidden from it, in a mount namespace of its own. */
const START = `
set -e
for dir in /var/spool /run /etc/cron.d; do [ ! -d $dir ] || mount -t tmpfs none $dir; done
[ ! -e /etc/crontab ] || mount --bind /dev/null /etc/crontab
mkdir -p /var/spool/cron/crontabs
cp "$CRON_TAB" /var/spool/cron/crontabs/root
chmod 600 /var/spool/cron/crontabs/root
LD_PRELOAD="$CRON_SHIM" exec "$CRON_PROGRAM" -f`;

export interface Span {
  zone: string;
  fromMs: number;
  toMs: number;
}

export interface Started {
  /** Minutes in which it started a job for the expression (epoch ms), ascending, by its place in the list. */
  times: readonly number[][];
  /** What cron says against the crontab, which it then does not use at all. */
  fault: string | undefined;
}

export class RealCron {
  private readonly dir: string;
  private readonly program: string;
  private readonly shim: string;

  /** @param dir a folder for its files */
  constructor(dir: string) {
    this.dir = dir;
    this.program = join(unpackDebianPackage("cron") ?? "", "usr/sbin/cron");
    this.shim = join(dir, "clock.so");
  }

  /** Why it cannot be had here. */
  prepare(): string | undefined {
    if (!fs.existsSync(this.program))
      return "the package cron cannot be downloaded: no apt-get here";
    const built = spawnSync("cc", ["-shared", "-fPIC", "-O1", "-o", this.shim, SHIM]);
    if (built.status !== 0) return `no C compiler: ${String(built.stderr)}`;
    const { status, stderr } = spawnSync("unshare", ["--mount", "true"], { encoding: "utf8" });
    return status === 0 ? undefined : `no mount namespace can be made: ${stderr}`;
  }

  /** @param expressions of five fields, or names such as @daily */
  start(expressions: readonly string[], { zone, fromMs, toMs }: Span): Started {
    const [tab, log] = [join(this.dir, "tab"), join(this.dir, "log")];
    fs.writeFileSync(tab, expressions.map((one, n) => `${one} job-${n}\n`).join(""));
    fs.writeFileSync(log, "");
    // It begins with the next minute but one.
    const env = {
      ...process.env,
      TZ: zone,
      CRON_TAB: tab,
      CRON_SHIM: this.shim,
      CRON_PROGRAM: this.program,
      CRON_LOG: log,
      CRON_FROM: String(Math.floor(fromMs / 1000) - 120),
      CRON_TO: String(Math.floor(toMs / 1000)),
    };
    const { status, stderr } = spawnSync("unshare", ["--mount", "sh", "-c", START], {
      env,
      encoding: "utf8",
    });
    if (status !== 0) throw new Error(`cron ended with ${status}: ${stderr}`);
    return readLog(fs.readFileSync(log, "utf8"), expressions.length, fromMs);
  }
}

function readLog(log: string, count: number, fromMs: number): Started {
  const times = Array.from({ length: count }, () => new Set<number>());
  let fault: string | undefined;
  for (const line of log.split("\n")) {
    const [, seconds, job] = /^(\d+) .* CMD \(job-(\d+)\)$/.exec(line) ?? [];
    if (job === undefined) {
      if (/error|bad/i.test(line)) fault ??= line;
      continue;
    }
    const ms = Math.floor(Number(seconds) / 60) * 60_000;
    if (ms > fromMs) times[Number(job)]?.add(ms);
  }
  return { times: times.map((one) => [...one].sort((a, b) => a - b)), fault };
}
