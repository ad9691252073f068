/** What a machine may be short of, and how a pool is brought there: at its start, or while it works. */
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { canLimit, freshUid, lowerLimit, withLimits } from "../support/limits.ts";
import { newPool, type Pool, type PoolOptions } from "../support/pool.ts";
import { canMount, type SmallDisk, smallDisk } from "../support/small-disk.ts";
import { waitFor } from "../support/wait-for.ts";
import { type Controller, controlGroup, whyNoGroup } from "./control-group.ts";

export interface Fault {
  name: string;
  when: "at start" | "under load";
  /** Why it cannot be tried here; undefined: it can. */
  whyNot(): string | undefined;
  /** A pool, in which the fault can be made and ended. With "at start" it is there before `run` is started. */
  make(options: PoolOptions): Faulty;
  /** What the pool must say of it: on stderr, in an alert, in supervisor.json. */
  says: RegExp;
  /** `run` refuses to start, with this exit code, instead of waiting. */
  exitCode?: number;
  /** All tasks run although it lasts, also those that come later. */
  isBearable?: true;
  /** What its tasks do, and how many they are, where they are not many easy ones. */
  tasks?: { count: number; task: Record<string, unknown> };
  /** Added to the settings. */
  config?: string;
  /** The same of this one setting. */
  sweepMs?: number;
}

export interface Faulty {
  pool: Pool;
  strike: () => void | Promise<void>;
  lift: () => void;
  /** It ends only with the processes that have it: `run` is stopped and started again. */
  isForLife?: true;
}

const MANY = 4096;
export const MIB = 2 ** 20;
/** More than a process can use. */
const NO_LIMIT_BYTES = 2 ** 46;
/** Nothing but a watch, or what takes its place, finds a file before the end of the test. */
const SELDOM_MS = 600_000;
const nothing = (): void => {};
const needsLimits = (): string | undefined => (canLimit() ? undefined : "needs root and prlimit");
const needsMount = (): string | undefined => (canMount() ? undefined : "needs the right to mount");

/** A limit of the system (ulimit) that the whole pool has from its start, and that is raised in what runs. */
function limitAtStart(limit: string, letter: string, max: number) {
  return (options: PoolOptions): Faulty => {
    const uid = freshUid();
    const prefix = withLimits(`-S -${letter} ${max}`);
    const pool = newPool({ ...options, uid, prefix });
    const lift = (): void => {
      for (const pid of pool.pids()) tryLimit(pid, uid, limit, MANY);
    };
    return { pool, strike: nothing, lift };
  };
}

/** Node raises its own limit of open files to the hard one; that nobody can raise again. */
function fewFilesForLife(max: number) {
  return (options: PoolOptions): Faulty => {
    const prefix = withLimits(`-n ${max}`);
    const lift = (): void => void prefix.splice(0);
    return {
      pool: newPool({ ...options, uid: freshUid(), prefix }),
      strike: nothing,
      lift,
      isForLife: true,
    };
  };
}

/** The limit that leaves a process so many descriptors. It may have larger ones. */
function limitForFree(pid: number, left: number): number {
  const open = new Set(fs.readdirSync(`/proc/${pid}/fd`).map(Number));
  let limit = 0;
  for (let free = 0; free < left; limit++) if (!open.has(limit)) free++;
  return limit;
}

/** A limit of the system, lowered in the pool's own processes, between two starts: a program that is just starting would die of it. */
function limitUnderLoad(limit: string, to: number | ((pid: number) => number)) {
  return (options: PoolOptions): Faulty => {
    const uid = freshUid();
    const pool = newPool({ ...options, uid });
    const lifts: (() => void)[] = [];
    return {
      pool,
      strike: async () => {
        const workers = pool.workers().map(({ pid }) => pid);
        const ours = [pool.supervisor()?.pid ?? 0, ...workers];
        await waitFor(() => workers.every(isStoppedAtRest), {
          what: "a moment between two starts",
        });
        for (const pid of ours) {
          const lift = tryLimit(pid, uid, limit, typeof to === "number" ? to : to(pid));
          if (lift !== undefined) lifts.push(lift);
        }
        for (const pid of workers) process.kill(pid, "SIGCONT");
      },
      lift: () => {
        for (const lift of lifts)
          try {
            lift();
          } catch {
            // It has ended.
          }
      },
    };
  };
}

/** `epoll_wait` and `epoll_pwait` by their numbers on x64 and arm64. */
const WAITS = new Set(["232", "281", "22"]);

/** Stops a process in which nothing is under way: a fork that a signal has held up begins again. Else it goes on. */
function isStoppedAtRest(pid: number): boolean {
  process.kill(pid, "SIGSTOP");
  const [call = ""] = fs.readFileSync(`/proc/${pid}/syscall`, "utf8").split(" ");
  if (!WAITS.has(call)) process.kill(pid, "SIGCONT");
  return WAITS.has(call);
}

/** A process may have ended before its limit is set. */
function tryLimit(pid: number, uid: number, limit: string, to: number): (() => void) | undefined {
  try {
    return lowerLimit(pid, uid, limit, to);
  } catch {
    return undefined;
  }
}

/** A limit of a control group. */
function groupOf(controller: Controller, max: number, isAtStart: boolean) {
  return (options: PoolOptions): Faulty => {
    const group = controlGroup(controller);
    if (isAtStart) group.limit(max);
    return {
      pool: newPool({ ...options, prefix: group.prefix }),
      strike: () => group.limit(max),
      lift: () => group.limit(undefined),
    };
  };
}

/** The address space that a process has at most had (bytes). */
function peakOf(pid: number): number {
  const status = fs.readFileSync(`/proc/${pid}/status`, "utf8");
  return Number(/^VmPeak:\s+(\d+) kB/m.exec(status)?.[1]) * 1024;
}

/** What Node takes before it does anything: much, and different from version to version. */
export function nodeBytes(): number {
  const script = 'process.stdout.write(require("node:fs").readFileSync("/proc/self/status"))';
  const status = execFileSync(process.execPath, ["-e", script], { encoding: "utf8" });
  return Number(/^VmPeak:\s+(\d+) kB/m.exec(status)?.[1]) * 1024;
}

/** So much address space for each process, beyond what Node takes. */
function fewAddresses(more: number) {
  return (options: PoolOptions): Faulty => {
    const uid = freshUid();
    const prefix = withLimits(`-S -v ${(nodeBytes() + more) / 1024}`);
    const pool = newPool({ ...options, uid, prefix });
    return { pool, strike: nothing, lift: () => allAddresses(pool, uid) };
  };
}

/** No process of the pool gets much more than it has had, nor do those that it starts. */
function noMoreAddresses(more: number) {
  return (options: PoolOptions): Faulty => {
    const uid = freshUid();
    const pool = newPool({ ...options, uid });
    const strike = (): void => {
      for (const pid of pool.pids()) tryLimit(pid, uid, "as", peakOf(pid) + more);
    };
    return { pool, strike, lift: () => allAddresses(pool, uid) };
  };
}

function allAddresses(pool: Pool, uid: number): void {
  for (const pid of pool.pids()) tryLimit(pid, uid, "as", NO_LIMIT_BYTES);
}

/** A disk that is full: of bytes, or of files. */
function fullDisk(what: "bytes" | "files", isAtStart: boolean) {
  return (options: PoolOptions): Faulty => {
    const disk = smallDisk(what === "files" ? 400 : 0);
    const pool = poolOn(disk, options);
    const strike = what === "bytes" ? () => disk.fill(0) : () => fillWithFiles(disk.dir);
    const lift = (): void => {
      disk.free();
      for (const file of fs.readdirSync(disk.dir))
        if (file.startsWith("file-")) fs.rmSync(join(disk.dir, file));
    };
    if (isAtStart) strike();
    return { pool, strike: isAtStart ? nothing : strike, lift };
  };
}

function fillWithFiles(dir: string): void {
  try {
    for (let n = 0; ; n++) fs.writeFileSync(join(dir, `file-${n}`), "");
  } catch {
    // It takes no more.
  }
}

/** The state tree lies on that disk; what is dropped there was made before. */
function poolOn(disk: SmallDisk, options: PoolOptions): Pool {
  const pool = newPool(options);
  const state = join(disk.dir, "state");
  fs.cpSync(pool.state, state, { recursive: true });
  fs.rmSync(pool.state, { recursive: true });
  fs.symlinkSync(state, pool.state);
  const drop: Pool["drop"] = (id, task) => {
    fs.writeFileSync(join(state, "mailbox", "inbox", `${id}.json`), JSON.stringify(task));
  };
  return { ...pool, drop };
}

/** A user namespace in which no directory can be watched. */
function withoutEvents(options: PoolOptions): Faulty {
  const script = 'echo 0 > /proc/sys/user/max_inotify_instances && exec "$@"';
  const prefix = ["unshare", "--user", "--map-root-user", "sh", "-c", script, "sh"];
  return { pool: newPool({ ...options, prefix }), strike: nothing, lift: nothing };
}

/** Functions that take more than there is, which ends their worker. */
export function hungry(megabytes: number) {
  const module = fileURLToPath(new URL("../fixtures/programs/fills-memory.mjs", import.meta.url));
  return {
    tasks: { count: 3, task: { agent: "hungry", payload: { megabytes } } },
    config: `\nagents: [{name: hungry, kind: module, module: ${module}}]\n`,
  };
}

/** While it runs the system gives it no more watches, and it loses the ones that it has: its inbox is moved away and back. */
function noMoreWatches(options: PoolOptions): Faulty {
  const pool = newPool({ ...options, prefix: ["unshare", "--user", "--map-root-user"] });
  const allow = (watches: number): void => {
    const target = `--target=${pool.supervisor()?.pid}`;
    const script = `echo ${watches} > /proc/sys/user/max_inotify_watches`;
    execFileSync("nsenter", ["--user", target, "sh", "-c", script]);
  };
  const strike = async (): Promise<void> => {
    allow(0);
    const away = `${pool.inbox}-away`;
    fs.renameSync(pool.inbox, away);
    await waitFor(() => fs.existsSync(pool.inbox), { what: "a new inbox" });
    fs.renameSync(away, pool.inbox);
  };
  return { pool, strike, lift: () => allow(MANY) };
}

export const SHORT_OF_MEMORY = /a worker process died because memory is short \(.*\)/;

const SHORT_OF_PROCESSES = /EAGAIN|no worker can be started|few processes and threads/;

export const FAULTS: readonly Fault[] = [
  {
    name: "processes and threads, 60 (ulimit -u)",
    when: "at start",
    whyNot: needsLimits,
    make: limitAtStart("nproc", "u", 60),
    says: /few processes and threads/,
    isBearable: true,
  },
  {
    name: "processes and threads, 14 (ulimit -u)",
    when: "at start",
    whyNot: needsLimits,
    make: limitAtStart("nproc", "u", 14),
    says: /no worker can be started/,
  },
  {
    name: "processes and threads, none (ulimit -u)",
    when: "under load",
    whyNot: needsLimits,
    make: limitUnderLoad("nproc", 1),
    says: SHORT_OF_PROCESSES,
  },
  {
    name: "processes and threads, 14 (pids.max)",
    when: "at start",
    whyNot: () => whyNoGroup("pids"),
    make: groupOf("pids", 14, true),
    says: /no worker can be started/,
  },
  {
    name: "processes and threads, none (pids.max)",
    when: "under load",
    whyNot: () => whyNoGroup("pids"),
    make: groupOf("pids", 1, false),
    says: SHORT_OF_PROCESSES,
  },
  {
    name: "address space for threads (ulimit -v)",
    when: "at start",
    whyNot: needsLimits,
    make: fewAddresses(256 * MIB),
    says: /memory is short \(ulimit -v .*\): a worker process has/,
    isBearable: true,
  },
  {
    name: "address space for work (ulimit -v)",
    when: "at start",
    whyNot: needsLimits,
    make: fewAddresses(256 * MIB),
    says: SHORT_OF_MEMORY,
    ...hungry(192),
  },
  {
    name: "address space for work (ulimit -v)",
    when: "under load",
    whyNot: needsLimits,
    make: noMoreAddresses(64 * MIB),
    says: SHORT_OF_MEMORY,
    ...hungry(384),
  },
  {
    name: "memory, 128 MiB (control group)",
    when: "at start",
    whyNot: () => whyNoGroup("memory"),
    make: groupOf("memory", 128 * MIB, true),
    says: SHORT_OF_MEMORY,
    ...hungry(192),
  },
  {
    name: "memory, 128 MiB (control group)",
    when: "under load",
    whyNot: () => whyNoGroup("memory"),
    make: groupOf("memory", 128 * MIB, false),
    says: SHORT_OF_MEMORY,
    ...hungry(192),
  },
  {
    name: "open files, 24 (ulimit -n)",
    when: "at start",
    whyNot: needsLimits,
    make: fewFilesForLife(24),
    says: /EMFILE/,
  },
  {
    name: "open files, none (ulimit -n)",
    when: "under load",
    whyNot: needsLimits,
    make: limitUnderLoad("nofile", 3),
    says: /EMFILE/,
  },
  {
    name: "open files, 1 left (ulimit -n)",
    when: "under load",
    whyNot: needsLimits,
    make: limitUnderLoad("nofile", (pid) => limitForFree(pid, 1)),
    says: /EMFILE/,
    // Some of them start while it lasts.
    tasks: { count: 60, task: { exec: ["sleep", "0.05"] } },
  },
  {
    name: "file events, none (inotify)",
    when: "at start",
    whyNot: () => (process.getuid?.() === 0 ? undefined : "needs root"),
    make: withoutEvents,
    says: /polling/,
    isBearable: true,
    sweepMs: SELDOM_MS,
  },
  {
    name: "file events, no more watches (inotify)",
    when: "under load",
    whyNot: () => (process.getuid?.() === 0 ? undefined : "needs root"),
    make: noMoreWatches,
    says: /polling/,
    isBearable: true,
    sweepMs: SELDOM_MS,
  },
  {
    name: "disk, full",
    when: "at start",
    whyNot: needsMount,
    make: fullDisk("bytes", true),
    says: /ENOSPC/,
    exitCode: 74,
  },
  {
    name: "disk, full",
    when: "under load",
    whyNot: needsMount,
    make: fullDisk("bytes", false),
    says: /ENOSPC|disk/,
  },
  {
    name: "inodes, none",
    when: "at start",
    whyNot: needsMount,
    make: fullDisk("files", true),
    says: /ENOSPC/,
    exitCode: 73,
  },
  {
    name: "inodes, none",
    when: "under load",
    whyNot: needsMount,
    make: fullDisk("files", false),
    says: /ENOSPC|disk/,
  },
];
