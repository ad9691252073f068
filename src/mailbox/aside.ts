/**
 * Aside: a file is taken out of the inbox, to be looked at while no process can rest on it. It gets the name of a refused file
 * without a reason, which recovery never loses: a process that dies here leaves it to be put back.
 */
import { join } from "node:path";
import { formatName, inboxName, type ProcessingName } from "../core/names.ts";
import { newMarker } from "./claim.ts";
import { moved } from "./steps.ts";
import type { Trays } from "./trays.ts";

/** @returns undefined when it does not wait there */
export function takeAside(
  trays: Trays,
  file: Pick<ProcessingName, "id" | "isBatch">,
): ProcessingName | undefined {
  const marker = newMarker(trays.clock, file.id, "bad", file.isBatch);
  const isTaken = moved(trays, join(trays.inbox, inboxName(marker)), asidePath(trays, marker));
  return isTaken ? marker : undefined;
}

export function asidePath(trays: Trays, marker: ProcessingName): string {
  return join(trays.processing, formatName(marker));
}
