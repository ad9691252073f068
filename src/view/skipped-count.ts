/**
 * Counts the skipped tasks among the records in `failed/`. Their names do not show that, so each record is opened once, and only
 * its beginning is read. The cost of a look is bounded: the next looks read the rest. Reads only.
 */
import fs from "node:fs";
import { join } from "node:path";
import { SKIPPED_MARKS } from "../core/skipped.ts";
import type { StateTree } from "../core/state-tree.ts";
import { openToRead } from "../host/regular-file.ts";
import { TRAYS } from "./choose-files.ts";
import { COUNT_MAX, type Count } from "./scan.ts";
import type { Observer } from "./tray-count.ts";

/** How many records the first look opens (15 µs each), and each later one. */
const FIRST_MAX = 20_000;
const LATER_MAX = 100;
/** The record of a skipped task names its kind within so many bytes: see `chain` in `core/dependencies.ts`. */
const HEAD_BYTES = 4096;
/** After this text the task itself begins, which may hold any text. */
const TASK = '"task":';

export class SkippedCount implements Observer {
  private readonly dir: string;
  /** For each record of the last walk: whether its task was skipped; undefined while it is not read yet. */
  private known = new Map<string, boolean | undefined>();
  private walked = new Map<string, boolean | undefined>();
  private unread: string[] = [];
  private isFirst = true;
  /** False until all names were seen once. */
  private isWalked = false;

  constructor({ mailbox }: StateTree) {
    this.dir = join(mailbox, TRAYS.failed.name);
  }

  begin(): void {
    this.walked = new Map();
  }

  /** A record that is retried leaves the tray, and is read again when it comes back. */
  see(name: string): void {
    if (this.walked.size < COUNT_MAX) this.walked.set(name, this.known.get(name));
  }

  end(): void {
    this.isWalked = true;
    this.known = this.walked;
    this.unread = [...this.known].flatMap(([name, isOne]) => (isOne === undefined ? [name] : []));
  }

  /** Reads some more of the records that the last whole walk has seen. */
  look(): Count {
    const max = this.isFirst ? FIRST_MAX : LATER_MAX;
    this.isFirst = false;
    for (const name of this.unread.splice(0, max))
      this.known.set(name, isSkipped(join(this.dir, name)));
    let count = 0;
    for (const isOne of this.known.values()) if (isOne === true) count++;
    return {
      count,
      is_exact: this.isWalked && this.unread.length === 0 && this.known.size < COUNT_MAX,
    };
  }
}

const head = Buffer.alloc(HEAD_BYTES);

/** False also for a record that cannot be read. */
function isSkipped(path: string): boolean {
  let fd: number | undefined;
  try {
    fd = openToRead(path);
    const text = head.subarray(0, fs.readSync(fd, head)).toString("latin1");
    const taskAt = text.indexOf(TASK);
    const isBefore = (at: number): boolean => at >= 0 && (taskAt < 0 || at < taskAt);
    return SKIPPED_MARKS.some((mark) => isBefore(text.indexOf(mark)));
  } catch {
    return false;
  } finally {
    if (fd !== undefined) fs.closeSync(fd);
  }
}
