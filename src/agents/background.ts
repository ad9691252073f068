/**
 * Decides what becomes of processes that left the process group of a run, and so outlived its programs. Those of agents and of runs
 * with limits end; those of a plain `exec` stay, because people start daemons so, and the record counts them.
 */
import { BUILT_IN_EXEC } from "../core/matching.ts";
import { ProcessChildren } from "../host/process-children.ts";
import { endTree, findTree, leaseIn } from "../host/process-tree.ts";
import { parentOf } from "../host/processes/proc-table.ts";
import { readProc } from "../host/read-proc.ts";
import type { Agent, Assignment } from "./agent.ts";

type Run = Pick<Assignment, "task" | "lease" | "limiter" | "stateDir" | "usage">;

/** It ends an endless line of parents. */
const PARENTS_MAX = 64;

/** Whether what the programs of a run leave behind goes on. */
export function keepsBackground(
  { settings }: Pick<Agent, "settings">,
  { task, limiter }: Pick<Assignment, "task" | "limiter">,
): boolean {
  return task.keep_background ?? (settings === BUILT_IN_EXEC && limiter === undefined);
}

/**
 * Notices processes that a run has left behind, for the price of a few small reads. When the parent of a process ends, the process
 * becomes a child of one above us: of the first process, or of one that asked for orphans. Whatever left its run is below such a child.
 */
export class Orphans {
  /**
   * All processes above us, our parent first. When one of them ends, what was below it moves to another of them, so the list stays
   * complete. Undefined: not known yet.
   */
  private above: readonly ProcessChildren[] | undefined;
  /** The children of the processes above us at the last look, each with its lease. Only new ones are looked at. */
  private known = new Map<number, string | undefined>();

  /**
   * Whether processes with this lease have lost their parent.
   * @returns undefined when the system does not show that
   */
  have(lease: string): boolean | undefined {
    try {
      return this.look(lease);
    } catch {
      // No descriptors are left.
      return undefined;
    }
  }

  private look(lease: string): boolean | undefined {
    this.above ??= openParents();
    if (this.above === undefined || this.above.length === 0) return undefined;
    const children = this.above.flatMap((parent) => parent.read());
    const now = new Map<number, string | undefined>();
    let isUnsure = false;
    let isFound = false;
    for (const pid of children) {
      const environ = this.known.has(pid) ? undefined : readProc(`/proc/${pid}/environ`);
      // It is becoming another program: nothing shows yet whose it is.
      if (environ?.length === 0 && parentOf(pid) !== undefined) {
        isUnsure = true;
        continue;
      }
      const its = environ === undefined ? this.known.get(pid) : leaseIn(environ);
      now.set(pid, its);
      if (its === lease) isFound = true;
    }
    this.known = now;
    return isFound || (isUnsure ? undefined : false);
  }
}

/** The process that gets the orphans of its system, or of its container. */
const FIRST = 1;

/** @returns undefined when one of them ended while we looked @throws the system's error when no descriptors are left */
function openParents(): ProcessChildren[] | undefined {
  const found: ProcessChildren[] = [];
  const open = (pid: number): boolean => {
    const children = ProcessChildren.open(pid);
    if (children !== undefined) found.push(children);
    return children !== undefined;
  };
  try {
    let last = 0;
    let at = parentOf(process.pid);
    for (; at !== undefined && at > 0 && found.length < PARENTS_MAX && open(at); at = parentOf(at))
      last = at;
    // What enters a container from outside (`docker exec`) has no parent in it.
    if (at === 0 && (last === FIRST || open(FIRST))) return found;
  } catch (error) {
    closeAll(found);
    throw error;
  }
  closeAll(found);
  return undefined;
}

function closeAll(lists: readonly ProcessChildren[]): void {
  for (const list of lists) list.close();
}

const orphans = new Orphans();

/**
 * Call this when no program of the run is left that mailchute has started. Never rejects.
 * @param known tests put a broken one here
 */
export async function closeBackground(
  agent: Pick<Agent, "settings">,
  run: Run,
  known: Pick<Orphans, "have"> = orphans,
): Promise<void> {
  const { lease, limiter, stateDir, usage } = run;
  const isAnyLeft = known.have(lease);
  if (!keepsBackground(agent, run)) {
    limiter?.endLeft();
    // A look at all processes costs milliseconds.
    if (isAnyLeft !== false) await endTree(lease, 0, undefined, stateDir);
  } else if (isAnyLeft === true) {
    const count = countLeft(lease, stateDir);
    if (count > 0) usage.left_processes = (usage.left_processes ?? 0) + count;
  }
}

/** At least one was seen. */
function countLeft(lease: string, stateDir: string): number {
  try {
    return findTree(lease, undefined, undefined, stateDir).length;
  } catch {
    return 1;
  }
}
