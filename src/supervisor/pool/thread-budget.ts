/** Decides how many threads the next worker process gets: fewer when the system has no room, or when the last one died because of them. */
import type { Settings } from "../../core/settings.ts";
import { describeRoom, processRoom } from "../../host/process-room.ts";
import { threadsFor, threadsWanted } from "../../host/threads.ts";

/** Node's own threads and the heartbeat, besides those for the disk. */
const OTHER_THREADS = 8;
/** With less room than this a worker process cannot start, and Node hangs when it gets only some of its threads. */
const WORKER_THREADS_MIN = 6;
/** After this time without a death because of threads, more threads are tried again (ms). */
const REMEMBERED_MS = 60_000;

export class ThreadBudget {
  readonly wanted: number;
  /**
   * The memory limit that ended the last worker before it was ready, for people; undefined when it died of another cause, or long
   * ago.
   */
  shortOf: string | undefined;
  private max = Number.POSITIVE_INFINITY;
  private untilMs = 0;

  constructor(durability: Settings["durability"]) {
    this.wanted = threadsWanted(durability);
  }

  /**
   * @param slots how many programs it may run at once; they need room as well
   * @throws Error with code EAGAIN when no worker process can be started
   */
  next(slots: number): number {
    const room = processRoom();
    if (room !== undefined && room.left < WORKER_THREADS_MIN)
      throw Object.assign(new Error("EAGAIN: no room for its threads"), { code: "EAGAIN" });
    if (performance.now() > this.untilMs) {
      this.max = Number.POSITIVE_INFINITY;
      this.shortOf = undefined;
    }
    return Math.min(this.max, threadsFor(this.wanted, OTHER_THREADS + slots, room));
  }

  /**
   * Notes that a worker died before it was ready, perhaps because it could not get so many threads. Their stacks use address space,
   * too.
   * @returns true when the next one gets fewer
   */
  shrink(threads: number, shortOf: string | undefined): boolean {
    this.shortOf = shortOf;
    this.untilMs = performance.now() + REMEMBERED_MS;
    this.max = Math.max(1, Math.floor(threads / 4));
    return this.max < threads;
  }
}

/** The known limit, for people: " (ulimit -u allows 84 processes and threads, and 3 are left)", or "". */
export function roomText(): string {
  const room = processRoom();
  return room === undefined ? "" : ` (${describeRoom(room)})`;
}
