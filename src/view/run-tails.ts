/** What runs say of themselves: how far they are, and their last line. Reads the end of a file again only when the file has changed. */
import fs from "node:fs";
import { join } from "node:path";
import { readEnd } from "../host/regular-file.ts";
import { isProgressLine, readTaskProgress, type TaskProgress } from "./task-progress.ts";

const END_BYTES = 4096;
const LINE_CHARS_MAX = 500;

export interface RunTail {
  progress: TaskProgress | undefined;
  /** The last line that holds something, as the program wrote it; null when there is none. */
  lastLine: string | null;
}

export class RunTails {
  private readonly kept = new Map<string, { stamp: string; tail: RunTail }>();

  /** @param runDir path of the run's folder */
  look(runDir: string): RunTail {
    const stamp = `${stampOf(join(runDir, "progress"))} ${stampOf(join(runDir, "stdout.log"))}`;
    const kept = this.kept.get(runDir);
    if (kept?.stamp === stamp) return kept.tail;
    const tail = { progress: readTaskProgress(runDir), lastLine: readLastLine(runDir) };
    this.kept.set(runDir, { stamp, tail });
    return tail;
  }

  /** Forgets all other runs. */
  keepOnly(runDirs: ReadonlySet<string>): void {
    for (const runDir of this.kept.keys()) if (!runDirs.has(runDir)) this.kept.delete(runDir);
  }
}

/** The time alone would not do: two writes may have the same one. */
function stampOf(path: string): string {
  const stats = fs.statSync(path, { throwIfNoEntry: false });
  return stats === undefined ? "" : `${stats.ino}.${stats.size}.${stats.mtimeMs}`;
}

function readLastLine(runDir: string): string | null {
  const line = readEnd(join(runDir, "stdout.log"), END_BYTES)
    .split(/[\r\n]+/)
    .findLast((one) => one.trim() !== "" && !isProgressLine(one));
  return line?.trim().slice(0, LINE_CHARS_MAX) ?? null;
}
