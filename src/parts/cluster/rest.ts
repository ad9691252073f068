/** The pause after a look at the tree, because reading the names of thousands of tasks takes long. */
import { type BackOffByCost, backOffByCost } from "../../core/back-off.ts";

export const LOOK_REST: BackOffByCost = { times: 20, mostMs: 3000 };

/** @param usedBeforeMs `usedMs` when the look began */
export const restOfLook = (usedBeforeMs: number): number =>
  backOffByCost(usedMs() - usedBeforeMs, LOOK_REST);

/** The processor time of this process (ms). Time in which it waits for a processor does not count: it takes nothing from others. */
export function usedMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}
