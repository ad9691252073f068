/** Archive: moves a settled record out of its tray, so that a node that runs again can use the id again. */
import { dirname } from "node:path";
import { systemCode } from "../../core/errors.ts";
import { RECORD_BYTES_MAX } from "../../core/limits.ts";
import { unlinkIfThere } from "../files/steps.ts";
import type { Trays } from "../files/trays.ts";

/** The depth of the target folder in the tree: `evidence/<id>/earlier/<submission>`. */
const TARGET_DEPTH = 4;

/**
 * Moves a settled record to `target`. With `power` the move is durable when this resolves. Otherwise a power cut could bring the
 * record back, and it would be taken for the result of the next run.
 */
export async function archive(trays: Trays, path: string, target: string): Promise<void> {
  const { storage } = trays;
  const dir = dirname(target);
  if (storage.look(dir) === undefined) storage.makeDir(dir, TARGET_DEPTH);
  // A power cut may bring a name of this task back to `processing/`. Recovery drops such a name because of the record. After the
  // record has moved, no such name may come back.
  if (trays.durability === "power") await storage.syncDirs([trays.processing]);
  try {
    storage.rename(path, target);
  } catch (error) {
    const code = systemCode(error);
    if (code === "ENOENT") return;
    if (code !== "EXDEV") throw error;
    // The mailbox is on another file system: copy the file first, then delete the original.
    const { bytes } = storage.read(path, RECORD_BYTES_MAX);
    // What cannot be copied stays.
    if (bytes === undefined) throw error;
    unlinkIfThere(trays, target);
    storage.create(target, bytes);
    if (trays.durability === "power") await storage.syncFiles([target]);
    unlinkIfThere(trays, path);
  }
  if (trays.durability === "power") await storage.syncDirs([dirname(target), dirname(path)]);
}
