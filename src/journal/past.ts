/** Reads a journal from an earlier time on, a piece in each look, and then the lines that are added. Reads only. */
import { statOf } from "../host/regular-file.ts";
import { rotatedOf } from "./rotated.ts";
import { JournalTail } from "./tail.ts";

export interface PastLimits {
  /** How much one look reads (bytes). */
  lookBytes: number;
  /** Only the end of longer journals is read (bytes). */
  bytesMax: number;
}

/** A look of this takes about 30 ms. */
const LIMITS: PastLimits = { lookBytes: 4 * 1024 * 1024, bytesMax: 256 * 1024 * 1024 };

interface Piece {
  path: string;
  ino: number;
  from: number;
}

export class JournalPast {
  /** Whether it has reached the lines that are written now. */
  isComplete = false;
  /** Rotated files that are read before the current one, the oldest first. */
  private left: Piece[] | undefined;
  private readonly begun = new Set<number>();
  private tail: JournalTail | undefined;

  /** @param ageMs files that were last written before that are not read */
  constructor(
    private readonly path: string,
    private readonly ageMs: number,
    private readonly visit: (line: string) => void,
    private readonly limits: PastLimits = LIMITS,
  ) {}

  look(nowMs: number): void {
    this.left ??= this.list(nowMs);
    let room = this.limits.lookBytes;
    while (room > 0) {
      const before = this.tail?.offset ?? 0;
      const lines = this.tail?.nextLines(room) ?? [];
      for (const line of lines) this.visit(line);
      const took = (this.tail?.offset ?? 0) - before;
      room -= Math.max(0, took);
      if (took > 0) continue;
      if (!this.isComplete && this.goOn()) continue;
      return;
    }
  }

  close(): void {
    this.tail?.close();
  }

  /** Opens the next file. @returns false when the current one is open already */
  private goOn(): boolean {
    const next = this.left?.shift() ?? this.missed();
    if (next === undefined && this.begun.has(-1)) {
      this.isComplete = true;
      return false;
    }
    this.tail?.close();
    if (next !== undefined) {
      this.begun.add(next.ino);
      this.tail = new JournalTail(next.path, next.from, next.ino);
    } else {
      // From now on the tail follows the current file through its rotations.
      this.begun.add(-1);
      const { size = 0, ino } = statOf(this.path) ?? {};
      this.tail = new JournalTail(this.path, Math.max(0, size - this.limits.bytesMax), ino);
    }
    return true;
  }

  /** A file that was rotated after the files were listed. */
  private missed(): Piece | undefined {
    if (this.begun.has(-1)) return undefined;
    const { begun } = this;
    const file = filesOf(this.path).find(({ ino }) => !begun.has(ino));
    return file && { ...file, from: 0 };
  }

  private list(nowMs: number): Piece[] {
    const chosen: Piece[] = [];
    let room = this.limits.bytesMax - (statOf(this.path)?.size ?? 0);
    for (const { path, ino, size, mtimeMs } of filesOf(this.path).reverse()) {
      const isOld = mtimeMs < nowMs - this.ageMs;
      if (isOld || room <= 0) {
        this.begun.add(ino);
        continue;
      }
      chosen.unshift({ path, ino, from: Math.max(0, size - room) });
      room -= size;
    }
    return chosen;
  }
}

function filesOf(path: string): { path: string; ino: number; size: number; mtimeMs: number }[] {
  return rotatedOf(path).flatMap((file) => {
    const stats = statOf(file);
    if (stats === undefined) return [];
    const { ino, size, mtimeMs } = stats;
    return [{ path: file, ino, size, mtimeMs }];
  });
}
