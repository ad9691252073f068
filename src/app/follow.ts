/** Lists what each process that settles a task does after that. Only the first entry is used. */
import type { MakeFollow } from "../mailbox/files/trays.ts";
import { callbacks } from "../parts/callbacks/follow.ts";

export const FOLLOW: readonly MakeFollow[] = [callbacks];
