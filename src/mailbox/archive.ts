/** Archive: a settled record leaves its tray for good, so that its id can be used again by a node that runs anew. */
import { dirname } from "node:path";
import { systemCode } from "../core/errors.ts";
import { unlinkIfThere } from "./steps.ts";
import type { Trays } from "./trays.ts";

/** How deep it goes into the tree: `evidence/<id>/earlier/<submission>`. */
const TARGET_DEPTH = 4;

/**
 * Moves a settled record to `target`. With `power` the move is durable when this resolves: a record that came back after
 * a power cut would be taken for the result of the next run.
 */
export async function archive(trays: Trays, path: string, target: string): Promise<void> {
  const { storage } = trays;
  const dir = dirname(target);
  if (storage.look(dir) === undefined) storage.makeDir(dir, TARGET_DEPTH);
  // A name of it that a power cut brings back to `processing/` is known as settled by its record: none may come back now.
  if (trays.durability === "power") await storage.syncDirs([trays.processing]);
  try {
    storage.rename(path, target);
  } catch (error) {
    const code = systemCode(error);
    if (code === "ENOENT") return;
    if (code !== "EXDEV") throw error;
    // The mailbox lies on another file system: a copy first, then the original goes.
    const { bytes } = storage.read(path, Number.MAX_SAFE_INTEGER);
    unlinkIfThere(trays, target);
    if (bytes !== undefined) storage.create(target, bytes);
    if (trays.durability === "power") await storage.syncFiles([target]);
    unlinkIfThere(trays, path);
  }
  if (trays.durability === "power") await storage.syncDirs([dirname(target), dirname(path)]);
}
