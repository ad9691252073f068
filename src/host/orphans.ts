/**
 * Notices processes that a run has left behind, for the price of a few small reads. When the parent of a process ends, the process
 * becomes a child of one above us: of the first process, or of one that asked for orphans. Whatever left its run is below such a child.
 */
import { leaseIn } from "./process-tree.ts";
import { parentOf } from "./processes/proc-table.ts";
import { readProc } from "./read-proc.ts";

/** It ends an endless line of parents. */
const PARENTS_MAX = 64;

export class Orphans {
  private above: number[] = [];
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
    const children = this.childrenAbove();
    if (children === undefined) return undefined;
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

  /** @returns undefined when the first process above us does not show its children */
  private childrenAbove(): number[] | undefined {
    // Our parent may have ended, and so may one above it.
    if (this.above[0] !== process.ppid) this.above = parentsOf(process.pid);
    const lists = this.above.map((pid) => readProc(`/proc/${pid}/task/${pid}/children`));
    const isStale = lists.some((list) => list === undefined);
    if (isStale) this.above = [];
    if (lists.length === 0 || lists.at(-1) === undefined) return undefined;
    return lists.flatMap((list) => list?.toString().split(" ").slice(0, -1).map(Number) ?? []);
  }
}

/** Our parent first. */
function parentsOf(pid: number): number[] {
  const found: number[] = [];
  for (let at = parentOf(pid) ?? 0; at > 0 && found.length < PARENTS_MAX; at = parentOf(at) ?? 0)
    found.push(at);
  return found;
}
