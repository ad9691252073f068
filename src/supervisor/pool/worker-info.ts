/** The pool's knowledge of one worker process, whether it is our child or not. */
import { thisPlace } from "../../host/identity.ts";

/**
 * How a worker process relates to this supervisor. `adopted`: a dead supervisor left it, and we use it like our own. `outdated`: a
 * dead supervisor left it, and its settings differ from ours. `elsewhere`: a supervisor left it on another host or in another
 * container. We cannot check its pid, so we do not know whether it lives. `by hand`: a person started it, and it runs
 * independently.
 */
export type WorkerTie = "child" | "adopted" | "outdated" | "elsewhere" | "by hand";

export interface WorkerInfo {
  id: string;
  pid: number;
  tie: WorkerTie;
  /** Whether it runs on this host and in this pid namespace, so that its pid means this process. */
  isHere: boolean;
  slots: number;
  /** The largest share that it was given lately: it runs no more tasks than this, whatever else it holds. */
  slotsPeak: number;
}

/** The prefix of the leases of a worker on this host. */
export function ownerPrefixOf(workerId: string): string {
  return `${thisPlace()}-${workerId.slice(2)}`;
}
