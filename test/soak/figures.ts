/** What a pool holds of the machine: descriptors, watches and memory by process, files by folder. */
import fs from "node:fs";
import { join } from "node:path";
import { type Pool, readJson } from "../support/pool.ts";

/** A value for each figure, by its name. */
export type Sample = Map<string, number>;

/** Folders whose number of files must not grow; what people keep (records, runs, evidence) is not among them. */
const FOLDERS = [
  ".",
  "mailbox/inbox",
  "mailbox/processing",
  "mailbox/.tmp",
  "control/inbox",
  "control/processing",
  "control/.tmp",
  "workers",
  "kv",
];

const MEGABYTE = 1024 * 1024;

/** @param probes directory in which each process says what memory it uses */
export function takeSample(pool: Pool, probes: string): Sample {
  const sample: Sample = new Map();
  const processes: [string, number | undefined][] = [
    ["supervisor", pool.supervisor()?.pid],
    ...pool.workers().map(({ pid }): [string, number] => ["workers", pid]),
  ];
  const add = (name: string, value: number): void => {
    sample.set(name, (sample.get(name) ?? 0) + value);
  };
  for (const [role, pid] of processes) {
    if (pid === undefined) continue;
    const open = list(`/proc/${pid}/fd`);
    add(`${role}: descriptors`, open.length);
    add(
      `${role}: watches`,
      open.map((fd) => watchesOf(pid, fd)).reduce((a, b) => a + b, 0),
    );
    const memory = readJson<Record<string, number>>(join(probes, String(pid)));
    if (memory === undefined) continue;
    const heap = (memory["heapUsed"] ?? 0) + (memory["external"] ?? 0);
    add(`${role}: heap (MB)`, heap / MEGABYTE);
    add(`${role}: resident (MB)`, (memory["rss"] ?? 0) / MEGABYTE);
  }
  for (const folder of FOLDERS) {
    const names = list(join(pool.state, folder));
    // Rotated journals are what the load asks for.
    const counted = names.filter((name) => !/\d{4}-\d\d-\d\dT.*\.jsonl$/.test(name));
    add(`files in ${folder}`, counted.length);
  }
  return sample;
}

function watchesOf(pid: number, fd: string): number {
  try {
    if (!fs.readlinkSync(`/proc/${pid}/fd/${fd}`).includes("inotify")) return 0;
    const info = fs.readFileSync(`/proc/${pid}/fdinfo/${fd}`, "utf8");
    return info.split("\n").filter((line) => line.startsWith("inotify wd:")).length;
  } catch {
    return 0;
  }
}

function list(dir: string): string[] {
  try {
    return fs.readdirSync(dir);
  } catch {
    return [];
  }
}
