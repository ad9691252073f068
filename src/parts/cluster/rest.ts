/** The pause after a look at the tree, because reading the names of thousands of tasks takes long. */
import { type RestRule, restAfter } from "../../core/rest.ts";

export const LOOK_REST: RestRule = { times: 20, mostMs: 3000 };

/** @param usedBeforeMs `usedMs` when the look began */
export const restOfLook = (usedBeforeMs: number): number =>
  restAfter(usedMs() - usedBeforeMs, LOOK_REST);

/** The processor time of this process (ms). Time in which it waits for a processor does not count: it takes nothing from others. */
export function usedMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}
