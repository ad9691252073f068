/**
 * Aside: takes a file out of the inbox, so that it can be compared while no process relies on it. The file gets the name of a
 * refused file, but no reason. If the process dies here, recovery puts the file back.
 */
import { join } from "node:path";
import { formatName, inboxName, type ProcessingName } from "../../core/names.ts";
import { newMarker } from "../claim/claim.ts";
import { moved } from "../files/steps.ts";
import type { Trays } from "../files/trays.ts";

/** @returns undefined when no such file waits in the inbox */
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
