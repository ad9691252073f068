/** What the runs of a storm have written down about themselves, a file for each machine. `handler.mjs` and the program of `storm.ts` write it. */
import fs from "node:fs";
import { join } from "node:path";

/** One run of a task at a machine. Times are epoch ms: all machines have one clock. */
export interface Run {
  machine: string;
  /** Its dispatch: `<origin>.<tree>.<task>.<submission>.<run>`. */
  id: string;
  task: string;
  startMs: number;
  /** The last sign of life. One that was killed may have gone on for a moment after it. */
  lastMs: number;
  /** Set when it has come to its end, and nothing stopped it. */
  endMs?: number;
}

export function tracePath(dir: string, machine: string): string {
  return join(dir, `${machine}.trace`);
}

/** In the order in which they began. */
export function readRuns(dir: string, machine: string): Run[] {
  const path = tracePath(dir, machine);
  if (!fs.existsSync(path)) return [];
  const runs = new Map<string, Run>();
  for (const line of fs.readFileSync(path, "utf8").split("\n")) {
    // A program that is killed leaves half a line.
    const [, what, id = "", at, process] =
      /^(start|on|stop|end) (\S+) (\d+) (\S+)$/.exec(line) ?? [];
    if (what === undefined) continue;
    const atMs = Number(at);
    const key = `${id} ${process}`;
    let run = runs.get(key);
    if (run === undefined) {
      run = { machine, id, task: taskOf(id), startMs: atMs, lastMs: atMs };
      runs.set(key, run);
    }
    run.lastMs = Math.max(run.lastMs, atMs);
    if (what === "end") run.endMs = atMs;
  }
  return [...runs.values()];
}

export function grouped(runs: readonly Run[], keyOf: (run: Run) => string): Run[][] {
  const groups = new Map<string, Run[]>();
  for (const run of runs) {
    const group = groups.get(keyOf(run));
    if (group === undefined) groups.set(keyOf(run), [run]);
    else group.push(run);
  }
  return [...groups.values()];
}

/** A name of a tree has a dot, too. */
function taskOf(id: string): string {
  return id.split(".").at(-3) ?? "";
}
