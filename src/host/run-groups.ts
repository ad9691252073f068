/**
 * Control groups of runs (version 2). They are made below a group that holds only this pool, where the system allows that. A group that
 * holds processes cannot pass controllers on, so the pool itself moves into a group beside those of its runs.
 */
import fs from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { systemCode } from "../core/errors.ts";
import { readProc } from "./read-proc.ts";

/** The group of the supervisor and its workers. */
const POOL = "mailchute-pool";
/** The controllers that limit a run. */
const CONTROLLERS: readonly string[] = ["memory", "pids"];

/** The place of this process among the groups. */
export interface GroupPlace {
  /** The directory of the group that contains the groups of the runs. */
  base: string;
  /** Whether the pool is already in its group beside them. */
  isEntered: boolean;
}

export interface GroupSystem {
  /** The directory where the groups of version 2 are mounted; undefined when they are not mounted. */
  mount: string | undefined;
  /** The group of the process, as a path below that. */
  path: string;
  pid: number;
  /** The processes above it, its parent first. */
  ancestors: readonly number[];
}

/** @param pid default: this process @throws the system's error when it cannot be read now */
export function groupSystem(pid: number = process.pid): GroupSystem {
  const mounts = readProc("/proc/self/mounts")?.toString() ?? "";
  const line = mounts.split("\n").find((one) => one.split(" ")[2] === "cgroup2");
  const groups = readProc(`/proc/${pid}/cgroup`)?.toString() ?? "";
  const path = /^0::(.*)$/m.exec(groups)?.[1] ?? "/";
  return { mount: line?.split(" ")[1], path, pid, ancestors: ancestorsOf(pid) };
}

/** @returns the place, or why there is none */
export function findGroupPlace(
  { mount, path, pid, ancestors }: GroupSystem,
  controllers: readonly string[] = CONTROLLERS,
): GroupPlace | string {
  if (mount === undefined) return "no control groups of version 2 are mounted";
  const own = resolve(join(mount, path));
  const isInPool = basename(own) === POOL;
  const base = isInPool ? dirname(own) : own;
  const there = wordsIn(join(base, "cgroup.controllers"));
  if (there === undefined) return `the control group ${base} is not to be seen`;
  const missing = controllers.filter((one) => !there.includes(one));
  if (missing.length > 0) return `${base} does not have ${missing.join(" and ")}`;
  try {
    for (const name of ["", "cgroup.procs", "cgroup.subtree_control"])
      fs.accessSync(join(base, name), fs.constants.W_OK);
  } catch (error) {
    return `${base} is not ours to write (${systemCode(error)}): it must be delegated, as by Delegate=yes of a unit`;
  }
  const handedOn = wordsIn(join(base, "cgroup.subtree_control")) ?? [];
  if (isInPool && controllers.every((one) => handedOn.includes(one)))
    return { base, isEntered: true };
  const isOurs = (one: number): boolean =>
    one === pid || (ancestors.includes(1) && ancestors.includes(one) && hasFirst(base));
  const others = pidsIn(base).filter((one) => !isOurs(one));
  // The other processes would have to move, and we do not rearrange a group that is not ours.
  if (others.length > 0)
    return `${base} holds other processes, too (${others.slice(0, 3).join(", ")}): run the pool as a service, or in a container`;
  return { base, isEntered: false };
}

/** Moves this process into a group beside the groups of future runs. @throws the system's error */
export function enterPoolGroup(
  { base }: GroupPlace,
  controllers: readonly string[] = CONTROLLERS,
): void {
  const pool = join(base, POOL);
  if (!fs.existsSync(pool)) fs.mkdirSync(pool);
  for (const pid of pidsIn(base)) fs.writeFileSync(join(pool, "cgroup.procs"), String(pid));
  if (controllers.length > 0)
    fs.writeFileSync(
      join(base, "cgroup.subtree_control"),
      controllers.map((one) => `+${one}`).join(" "),
    );
}

/** The group of one run. */
export class RunGroup {
  readonly dir: string;

  /** @throws the system's error */
  constructor(base: string, name: string, limits: { memoryBytes: number; threads: number }) {
    this.dir = join(base, name);
    fs.mkdirSync(this.dir);
    const { memoryBytes, threads } = limits;
    try {
      if (memoryBytes > 0) {
        fs.writeFileSync(join(this.dir, "memory.max"), String(memoryBytes));
        // The kernel kills all processes of the run together, because a run that lost one process cannot go on.
        fs.writeFileSync(join(this.dir, "memory.oom.group"), "1");
        // Otherwise the run would fill the swap first. Not every kernel counts swap.
        const swap = join(this.dir, "memory.swap.max");
        if (fs.existsSync(swap)) fs.writeFileSync(swap, "0");
      }
      if (threads > 0) fs.writeFileSync(join(this.dir, "pids.max"), String(threads));
    } catch (error) {
      this.remove();
      throw error;
    }
  }

  /** The file that takes a process into the group: a program writes its pid there. */
  get entry(): string {
    return join(this.dir, "cgroup.procs");
  }

  /** What the run has used, and how often a limit stopped it. @throws the system's error when it cannot be read now */
  read(): { pids: number[]; cpuMs: number; kills: number; refusals: number } {
    return {
      pids: pidsIn(this.dir),
      cpuMs: Math.round(this.numberIn("cpu.stat", "usage_usec") / 1000),
      kills: this.numberIn("memory.events", "oom_kill"),
      refusals: this.numberIn("pids.events", "max"),
    };
  }

  /** Ends all of its processes at once, even while they start others. */
  kill(): void {
    try {
      fs.writeFileSync(join(this.dir, "cgroup.kill"), "1");
    } catch {
      // A kernel before 5.14 cannot do this. The caller ends the processes one by one.
    }
  }

  /** @returns false when processes are left in it */
  remove(): boolean {
    try {
      fs.rmdirSync(this.dir);
      return true;
    } catch (error) {
      return systemCode(error) === "ENOENT";
    }
  }

  private numberIn(file: string, name: string): number {
    const text = readText(join(this.dir, file)) ?? "";
    return Number(new RegExp(`^${name} (\\d+)$`, "m").exec(text)?.[1] ?? 0);
  }
}

/** Removes groups without processes, such as those of dead workers. @param isOld true if no process is about to enter the group */
export function removeEmptyGroups(base: string, prefix: string, isOld: (dir: string) => boolean) {
  for (const name of fs.readdirSync(base)) {
    const dir = join(base, name);
    if (!name.startsWith(prefix) || !isOld(dir)) continue;
    try {
      fs.rmdirSync(dir);
    } catch {
      // A process that a run left behind on purpose is still in the group.
    }
  }
}

/** Whether the first process of this machine or container is in the group. */
function hasFirst(base: string): boolean {
  return pidsIn(base).includes(1);
}

function pidsIn(dir: string): number[] {
  const words = wordsIn(join(dir, "cgroup.procs")) ?? [];
  // 0 means a process that is not visible from here.
  return words.map(Number);
}

function wordsIn(path: string): string[] | undefined {
  return readText(path)
    ?.split(/\s+/)
    .filter((word) => word !== "");
}

function readText(path: string): string | undefined {
  try {
    return fs.readFileSync(path, "utf8");
  } catch {
    return undefined;
  }
}

function ancestorsOf(pid: number): number[] {
  const found: number[] = [];
  for (let at = pid; at > 1 && found.length < 64; ) {
    const status = readProc(`/proc/${at}/status`)?.toString() ?? "";
    at = Number(/^PPid:\s+(\d+)$/m.exec(status)?.[1] ?? 0);
    if (at > 0) found.push(at);
  }
  return found;
}
