/** Looks for one record near the end of a journal. For recovery, which must not write a line a second time. */
import fs from "node:fs";
import { parseObject } from "../core/json-object.ts";

/** What a dead process wrote last is near the end; older lines are not looked at (bytes). */
const TAIL_BYTES = 8 * 1024 * 1024;

/** A pipe in its place does not keep us waiting for a writer. */
const TO_READ = fs.constants.O_RDONLY | (fs.constants.O_NONBLOCK ?? 0);

/** True when a record of this lease with `event` or `status` equal to `what` stands in the journal's tail. */
export function hasRecord(path: string, lease: string, what: string): boolean {
  let fd: number;
  try {
    fd = fs.openSync(path, TO_READ);
  } catch {
    return false;
  }
  try {
    const stats = fs.fstatSync(fd);
    if (!stats.isFile()) return false;
    const { size } = stats;
    const buffer = Buffer.allocUnsafe(Math.min(size, TAIL_BYTES));
    const got = fs.readSync(fd, buffer, 0, buffer.length, size - buffer.length);
    const text = buffer.toString("utf8", 0, got);
    for (let at = text.lastIndexOf(lease); at > 0; at = text.lastIndexOf(lease, at - 1)) {
      const from = text.lastIndexOf("\n", at) + 1;
      const to = text.indexOf("\n", at);
      const record = parseObject(text.slice(from, to === -1 ? undefined : to));
      if (record?.["lease"] === lease && (record["event"] === what || record["status"] === what))
        return true;
    }
    return false;
  } finally {
    fs.closeSync(fd);
  }
}
