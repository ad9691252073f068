/** Shares the slots of a pool among its worker processes. */
import { ownerPrefixOf, type WorkerInfo } from "./worker-info.ts";
import type { Workers } from "./workers.ts";

/** The result of sharing. */
export interface SlotShares {
  /** Slots by worker id. */
  slots: Record<string, number>;
  /** More tasks run than there are slots: nothing starts until enough have ended. */
  isOversubscribed: boolean;
}

/**
 * Shares the slots among all workers, and stores each worker's share in it.
 * @param max slots over all workers
 * @param claims how many tasks each worker holds, by owner prefix: running ones, and those that have run and wait for the disk
 */
export function shareAmong(
  workers: Workers,
  max: number,
  claims: ReadonlyMap<string, number>,
): SlotShares {
  const { members, leaving, alone } = workers;
  const countOf = (worker: WorkerInfo): number =>
    Math.min(claims.get(ownerPrefixOf(worker.id)) ?? 0, worker.slotsPeak);
  const counts = members.map(countOf);
  // Leaving workers may finish their tasks, but get no new ones. Their known tasks count.
  const others = max - sum(leaving.map(countOf));
  const shared = Math.max(0, others - alone.length);
  const isOversubscribed = sum(counts) > shared;
  const slots = shareSlots(shared, counts);
  members.forEach((worker, index) => {
    const share = slots[index] ?? 0;
    // A worker may still run tasks that it claimed under its earlier share.
    if (!isOversubscribed) worker.slotsPeak = Math.max(worker.slots, share);
    worker.slots = share;
  });
  let free = others - sum(counts) - sum(alone.map(countOf));
  for (const worker of alone) if (countOf(worker) === 0) worker.slots = free-- > 0 ? 1 : 0;
  const all = [...members, ...leaving, ...alone];
  return {
    slots: Object.fromEntries(all.map((worker) => [worker.id, worker.slots])),
    isOversubscribed,
  };
}

/**
 * While more tasks run than there are slots, each worker gets 0, so that nothing starts. Otherwise all get the same share, except
 * that a worker that already runs more tasks keeps its number.
 * @param max slots over all workers
 * @param running how many tasks each worker runs now
 * @returns slots of each worker
 */
export function shareSlots(max: number, running: readonly number[]): number[] {
  const count = running.length;
  const total = sum(running);
  if (total > max) return running.map(() => 0);
  const even = running.map((_, index) => Math.floor(max / count) + (index < max % count ? 1 : 0));
  if (running.every((n, index) => n <= (even[index] ?? 0))) return even;
  const shares = [...running];
  for (let left = max - total; left > 0; left--) {
    const least = shares.indexOf(Math.min(...shares));
    shares[least] = (shares[least] ?? 0) + 1;
  }
  return shares;
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, n) => total + n, 0);
}
