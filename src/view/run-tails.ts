/** Reads what runs report: their progress and their last line. A run is read again when its files have changed, at most twice a second. */
import { join } from "node:path";
import { readEnd, statOf } from "../host/regular-file.ts";
import { isProgressLine, progressIn, type TaskProgress } from "./task-progress.ts";

const END_BYTES = 4096;
const LINE_CHARS_MAX = 500;
const AGAIN_MS = 450;

export interface RunTail {
  progress: TaskProgress | undefined;
  /** The last line that is not empty, as the program wrote it; null when there is none. */
  lastLine: string | null;
}

interface Kept {
  stamp: string;
  readMs: number;
  tail: RunTail;
}

const NOTHING: RunTail = { progress: undefined, lastLine: null };

export class RunTails {
  private readonly kept = new Map<string, Kept>();

  /** @param runDir path of the run's folder */
  look(runDir: string): RunTail {
    const nowMs = performance.now();
    const kept = this.kept.get(runDir);
    if (kept !== undefined && nowMs - kept.readMs < AGAIN_MS) return kept.tail;
    const progress = join(runDir, "progress");
    const stdout = join(runDir, "stdout.log");
    const stamps = [stampOf(progress), stampOf(stdout)] as const;
    const stamp = stamps.join(" ");
    if (kept?.stamp === stamp) return kept.tail;
    const [written, printed] = [progress, stdout].map((path, i) =>
      stamps[i] === "" ? "" : readEnd(path, END_BYTES),
    );
    const tail = {
      progress: progressIn(written ?? "", printed ?? ""),
      lastLine: lastLineIn(printed ?? ""),
    };
    this.kept.set(runDir, { stamp, readMs: nowMs, tail });
    return tail;
  }

  /** The result of the last look at this run. */
  last(runDir: string): RunTail {
    return this.kept.get(runDir)?.tail ?? NOTHING;
  }

  /** Forgets all other runs. */
  keepOnly(runDirs: ReadonlySet<string>): void {
    for (const runDir of this.kept.keys()) if (!runDirs.has(runDir)) this.kept.delete(runDir);
  }
}

/** The time alone is not enough: two writes may have the same time. */
function stampOf(path: string): string {
  const stats = statOf(path);
  return stats === undefined ? "" : `${stats.ino}.${stats.size}.${stats.mtimeMs}`;
}

function lastLineIn(printed: string): string | null {
  const line = printed
    .split(/[\r\n]+/)
    .findLast((one) => one.trim() !== "" && !isProgressLine(one));
  return line?.trim().slice(0, LINE_CHARS_MAX) ?? null;
}
