/** What the pool knows of a worker process, its own child or not. */
import { thisPlace } from "../../host/identity.ts";

export interface WorkerInfo {
  id: string;
  pid: number;
  slots: number;
  /** The most it was given lately: it runs no more, whatever else it holds. */
  slotsPeak: number;
  isSpawned: boolean;
  /** Its settings are not ours. */
  isOutdated?: boolean;
  /** It is on another host or in another container: its pid says nothing here, and it is not known whether it lives. */
  isElsewhere?: boolean;
}

/** Whether one that another supervisor started serves us like our own. */
export function isAdopted(worker: WorkerInfo): boolean {
  return worker.isOutdated !== true && worker.isElsewhere !== true;
}

/** What the leases of a worker of this place begin with. */
export function ownerPrefixOf(workerId: string): string {
  return `${thisPlace()}-${workerId.slice(2)}`;
}
