/** What the pool knows of a worker process, its own child or not. */
import { thisPlace } from "../../host/identity.ts";

/**
 * What a worker process is to this supervisor. `adopted`: a dead supervisor left it, and it serves us like our own. `outdated`: one
 * of those whose settings are not ours. `elsewhere`: one of those on another host or in another container; its pid says nothing
 * here, and it is not known whether it lives. `by hand`: a person started it, and it goes by its own.
 */
export type WorkerTie = "child" | "adopted" | "outdated" | "elsewhere" | "by hand";

export interface WorkerInfo {
  id: string;
  pid: number;
  tie: WorkerTie;
  slots: number;
  /** The most it was given lately: it runs no more, whatever else it holds. */
  slotsPeak: number;
}

/** What the leases of a worker of this place begin with. */
export function ownerPrefixOf(workerId: string): string {
  return `${thisPlace()}-${workerId.slice(2)}`;
}
