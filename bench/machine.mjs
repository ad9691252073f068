/** What this machine is, and what it has of the things that a benchmark may need. Changes nothing. */
import { spawnSync } from "node:child_process";
import fs from "node:fs";
import os from "node:os";
import { delimiter, join } from "node:path";

/** Where Debian and its kin keep PostgreSQL's programs: not in PATH. */
const POSTGRES_HOMES = "/usr/lib/postgresql";

/** @returns the program's path, or undefined when it is not there */
export function findProgram(name) {
  const places = (process.env.PATH ?? "").split(delimiter).concat("/usr/sbin", "/sbin");
  if (fs.existsSync(POSTGRES_HOMES))
    for (const version of fs.readdirSync(POSTGRES_HOMES).sort().reverse())
      places.push(join(POSTGRES_HOMES, version, "bin"));
  return places.map((place) => join(place, name)).find((path) => fs.existsSync(path));
}

export const isRoot = process.getuid?.() === 0;

/** Facts that a reader needs to judge the figures. */
export function describeMachine() {
  return {
    at: new Date().toISOString(),
    cpu: os.cpus()[0]?.model ?? "unknown",
    cores: os.availableParallelism(),
    memory_gib: Math.round(os.totalmem() / 2 ** 30),
    kernel: `${os.type()} ${os.release()}`,
    node: process.versions.node,
    load_before: os.loadavg()[0],
    commit: firstLine("git", ["rev-parse", "--short", "HEAD"]),
    programs: {
      redis: firstLine("redis-server", ["--version"])?.replace(/ sha=.*/, ""),
      postgres: firstLine("postgres", ["--version"]),
      cc: firstLine("cc", ["--version"]),
    },
  };
}

function firstLine(program, args) {
  const path = findProgram(program);
  if (path === undefined) return undefined;
  const { stdout, status } = spawnSync(path, args, { encoding: "utf8" });
  return status === 0 ? stdout.split("\n")[0] : undefined;
}
