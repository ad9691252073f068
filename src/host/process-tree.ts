/** Finds and ends every process of an attempt: its group, its descendants, and other processes with the lease in their environment. */
import { isAbsolute } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { parseOwner, thisPlace } from "./identity.ts";
import type { ProcessLook } from "./processes/process-source.ts";
import { processes } from "./processes/processes.ts";
import { isOtherTree, treeIdOf } from "./tree-id.ts";

export const LEASE_VARIABLE = "MAILCHUTE_LEASE";
export const STATE_VARIABLE = "MAILCHUTE_STATE";
/** The folder in which a run of an agent drops files for mailchute. */
export const DROP_VARIABLE = "MAILCHUTE_DROP";
/** A path in the state tree of the run, even when the program sets another state tree for its children. */
export const TASK_FILE_VARIABLE = "MAILCHUTE_TASK_FILE";

const LEASE_ENTRY = Buffer.from(`${LEASE_VARIABLE}=`);

/** Separates a lease from the number of a line of its batch. To end the lease is to end its lines. */
const PART_MARK = ".".charCodeAt(0);

/** The parent of all kernel threads, which have no environment. */
const KERNEL_PARENT = 2;

/** Pause between two checks whether the tree is gone (ms). */
const POLL_MS = 20;
/** The same pause while no process is left, but one may be just starting (ms). */
const NEWBORN_POLL_MS = 5;
/** The same pause while the system has no descriptor left to look (ms). */
const BLIND_POLL_MS = 250;
/** A process that has not ended this long after SIGKILL never will (ms). */
const KILL_LIMIT_MS = 5000;

/**
 * The pids of the attempt with this lease, without zombies. Where processes cannot be listed, only the group can be reached.
 * @param lease one that ends in a dot means every lease that begins with it
 * @param rootPid the program that was started, when known
 * @param known start times by pid of the processes found before; new ones are added. It is the only way to find a process whose
 *   parent has ended and which left the group and cleared its environment
 * @param stateDir the tree of these leases. If the tree is a copy, programs of the original tree may run under the same leases
 */
export function findTree(
  lease: string,
  rootPid?: number,
  known = new Map<number, number>(),
  stateDir?: string,
): number[] {
  return lookForTree(lease, rootPid, known, stateDir).pids;
}

interface TreeLook {
  pids: number[];
  /** A process is just starting, and nothing shows yet which attempt it belongs to. */
  isUnsure: boolean;
}

function lookForTree(
  lease: string,
  rootPid: number | undefined,
  known: Map<number, number>,
  stateDir: string | undefined,
): TreeLook {
  const look = rootPid === undefined ? processes().look() : tryLook();
  const rows = look?.rows ?? [];
  // Without a list only the group can be reached, by its negative number.
  if (look === undefined || rows.length === 0) {
    const isAlive = rootPid !== undefined && isGroupAlive(rootPid);
    return { pids: isAlive ? [-rootPid] : [], isUnsure: false };
  }
  const found = new Set<number>();
  const entry = Buffer.from(`${LEASE_VARIABLE}=${lease}`);
  const bornTicks = bornTicksOf(lease);
  const tree = stateDir === undefined ? null : treeIdOf(stateDir);
  let isUnsure = false;
  for (const row of rows) {
    if (row.pid === process.pid) continue;
    const isGroup =
      rootPid !== undefined &&
      (row.pid === rootPid || row.group === rootPid || row.session === rootPid);
    const mayHold = row.startTicks >= bornTicks && row.parent !== KERNEL_PARENT;
    if (isGroup || known.get(row.pid) === row.startTicks) found.add(row.pid);
    // A caller that names the root has seen it start. Check this before reading the environment: a process may stop being new in
    // between.
    else if (mayHold && rootPid === undefined && look.isNewborn(row)) isUnsure = true;
    else if (mayHold && environHolds(look.environ(row.pid), entry, tree)) found.add(row.pid);
  }
  // Children that cleared their environment still have a parent that was found.
  for (let grew = true; grew; ) {
    grew = false;
    for (const row of rows) {
      if (!found.has(row.pid) && found.has(row.parent) && row.pid !== process.pid) {
        found.add(row.pid);
        grew = true;
      }
    }
  }
  for (const row of rows) if (found.has(row.pid)) known.set(row.pid, row.startTicks);
  return { pids: [...found], isUnsure };
}

/**
 * Sends SIGTERM to all, waits, then sends SIGKILL to the rest until no process is left. While the system cannot list processes, it
 * keeps trying.
 * @param graceMs 0 kills at once
 * @param stateDir see `findTree`
 * @returns how many processes are still there after five seconds (stuck in the kernel)
 */
export async function endTree(
  lease: string,
  graceMs: number,
  rootPid?: number,
  stateDir?: string,
): Promise<number> {
  const known = new Map<number, number>();
  const look = async (): Promise<TreeLook> => {
    for (;;) {
      try {
        return lookForTree(lease, rootPid, known, stateDir);
      } catch {
        // We cannot know what still runs. Keep trying, because two runs of one task must not overlap.
        await wait(BLIND_POLL_MS);
      }
    }
  };
  let seen = await look();
  if (seen.pids.length > 0 && graceMs > 0) {
    signalAll(seen.pids, "SIGTERM");
    const deadline = performance.now() + graceMs;
    while (seen.pids.length > 0 && performance.now() < deadline) {
      await wait(POLL_MS + processes().restMs);
      seen = await look();
    }
  }
  const deadline = performance.now() + KILL_LIMIT_MS;
  while ((seen.pids.length > 0 || seen.isUnsure) && performance.now() < deadline) {
    // Stop all first, so that no process can fork while the others are killed.
    signalAll(seen.pids, "SIGSTOP");
    signalAll((await look()).pids, "SIGKILL");
    await wait((seen.pids.length > 0 ? POLL_MS : NEWBORN_POLL_MS) + processes().restMs);
    seen = await look();
  }
  return seen.pids.length;
}

/**
 * Sends SIGKILL to the rest of the group and session of a program that has ended, until no process is left. A process that has left
 * both keeps running.
 * @returns how many processes are still there after five seconds
 */
export async function endGroup(rootPid: number): Promise<number> {
  const deadline = performance.now() + KILL_LIMIT_MS;
  for (;;) {
    const left = isGroupAlive(rootPid) ? findGroup(rootPid) : [];
    if (left.length === 0 || performance.now() >= deadline) return left.length;
    signalAll(left, "SIGKILL");
    await wait(POLL_MS + processes().restMs);
  }
}

function findGroup(rootPid: number): number[] {
  const rows = tryLook()?.rows ?? [];
  // Without a list only the group can be reached, by its negative number.
  if (rows.length === 0) return [-rootPid];
  return rows
    .filter(({ group, session }) => group === rootPid || session === rootPid)
    .map(({ pid }) => pid);
}

/** A known group can be ended without this list. */
function tryLook(): ProcessLook | undefined {
  try {
    return processes().look();
  } catch {
    return undefined;
  }
}

export function isGroupAlive(group: number): boolean {
  try {
    process.kill(-group, 0);
    return true;
  } catch {
    return false;
  }
}

/** Stops a group at once, so that it does nothing more; the caller ends it later. */
export function stopGroup(group: number): void {
  signalAll([-group], "SIGSTOP");
}

/** Processes that are gone, or not ours, are passed over. */
export function signalAll(pids: readonly number[], signal: NodeJS.Signals): void {
  for (const pid of pids) {
    try {
      process.kill(pid, signal);
    } catch {
      // The process ended by itself, or is not ours.
    }
  }
}

/** The start time of the lease holder (ticks). Every process with this lease is younger. 0 when it is not known. */
function bornTicksOf(lease: string): number {
  const owner = parseOwner(lease.split(".")[2] ?? "");
  return owner?.place === thisPlace() ? owner.startTicks : 0;
}

/** The lease in the variables of a process. */
export function leaseIn(environ: Buffer | undefined): string | undefined {
  if (environ === undefined) return undefined;
  for (
    let at = environ.indexOf(LEASE_ENTRY);
    at !== -1;
    at = environ.indexOf(LEASE_ENTRY, at + 1)
  ) {
    if (at > 0 && environ[at - 1] !== 0) continue;
    const end = environ.indexOf(0, at);
    return environ.toString("utf8", at + LEASE_ENTRY.length, end === -1 ? environ.length : end);
  }
  return undefined;
}

/** @param tree the tree of the lease; null when it is not known */
function environHolds(environ: Buffer | undefined, entry: Buffer, tree: string | null): boolean {
  if (environ === undefined) return false;
  // Match only at the start of a variable: the value of another variable may hold the same text.
  for (let at = environ.indexOf(entry); at !== -1; at = environ.indexOf(entry, at + 1)) {
    const next = environ[at + entry.length];
    const isWhole = next === 0 || next === PART_MARK || entry.at(-1) === PART_MARK;
    if (isWhole && (at === 0 || environ[at - 1] === 0)) return !isOfOtherTree(environ, tree);
  }
  return false;
}

/**
 * Whether a worker of another tree started the process. If that tree was moved, it is not found at its old path, and the process
 * counts as ours. A program that only sends commands to another tree counts as ours, too.
 */
function isOfOtherTree(environ: Buffer, tree: string | null): boolean {
  if (tree === null) return false;
  const variables = environ.toString("latin1").split("\0");
  const textOf = (name: string): string =>
    Buffer.from(
      variables.find((one) => one.startsWith(`${name}=`))?.slice(name.length + 1) ?? "",
      "latin1",
    ).toString();
  const stateDir = textOf(STATE_VARIABLE);
  const isItsOwn = isAbsolute(stateDir) && textOf(TASK_FILE_VARIABLE).startsWith(`${stateDir}/`);
  return isItsOwn && isOtherTree(tree, stateDir);
}
