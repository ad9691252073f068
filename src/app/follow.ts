/** Lists what follows from a settled task, in each process that settles tasks. The first one is used. */
import type { MakeFollow } from "../mailbox/files/follow.ts";
import { callbacks } from "../parts/callbacks/follow.ts";

export const FOLLOW: readonly MakeFollow[] = [callbacks];
