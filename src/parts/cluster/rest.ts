/** How long a look of the cluster at the tree rests: to read the names of thousands of tasks takes long. */
import { type RestRule, restAfter } from "../../core/rest.ts";

export const LOOK_REST: RestRule = { times: 20, mostMs: 3000 };

/** @param tookMs the time that the look has taken */
export const restOfLook = (tookMs: number): number => restAfter(tookMs, LOOK_REST);
