/** Computes the id of a file's contents as a blob. A large file takes minutes, so other work of this process goes on in between. */
import { createHash } from "node:crypto";
import fs from "node:fs";
import { setImmediate as othersTurn } from "node:timers/promises";
import { openToRead } from "../host/regular-file.ts";

/** How much of a file is read at once (bytes). */
const CHUNK = 1 << 20;
/** After so much, others have their turn (bytes): a tenth of a second. */
const PAUSE_BYTES = 32 << 20;

/** The id of the blob with these contents. */
export async function hashOfFile(
  path: string | Buffer,
  { mode }: { mode: string },
  algorithm: string,
): Promise<string> {
  if (mode === "120000") {
    const target = fs.readlinkSync(path, { encoding: "buffer" });
    return createHash(algorithm).update(`blob ${target.length}\0`).update(target).digest("hex");
  }
  const fd = openToRead(path);
  try {
    const { size } = fs.fstatSync(fd);
    const hash = createHash(algorithm).update(`blob ${size}\0`);
    const chunk = Buffer.allocUnsafe(Math.min(CHUNK, size + 1));
    let read = 0;
    // Of a file that grows only what it had is read: its end may never come.
    for (let left = size, count = 1; left > 0 && count > 0; left -= count) {
      count = fs.readSync(fd, chunk, 0, Math.min(chunk.length, left), null);
      hash.update(chunk.subarray(0, count));
      read += count;
      if (read % PAUSE_BYTES < count) await othersTurn();
    }
    return hash.digest("hex");
  } finally {
    fs.closeSync(fd);
  }
}
