/**
 * Notes of the programs that run, for systems that hide the variables of some of them: which process began when, and with which of our
 * variables. A worker writes one when it has started a program, and removes it at the end. The note of a worker that died is found by the
 * process that ends what it left.
 */
import fs from "node:fs";
import { join } from "node:path";
import { listDir } from "../list-dir.ts";
import { makeDirs } from "../make-dirs.ts";
import { readRegularText, writeRegularText } from "../regular-file.ts";
import { USER_STATE_DEPTH, userStateDir } from "../user-state.ts";
import type { ProcessRow } from "./process-source.ts";

/** These say to which run of which tree a process belongs. */
const NOTED = /^MAILCHUTE_(?:LEASE|STATE|TASK_FILE)$/;
/** Times are whole seconds, and the clock may be adjusted. */
const SLACK_S = 1;
/** A note that is younger (s) may be of a process that began after the table was read. */
const YOUNG_S = 10;

/**
 * @param sinceMs by the date, before the program was started
 * @returns removes the note; never throws
 */
export function noteProgram(
  pid: number,
  variables: NodeJS.ProcessEnv,
  sinceMs: number,
): () => void {
  const path = join(notesDir(), String(pid));
  const entries = Object.entries(variables).filter(([name]) => NOTED.test(name));
  const lines = entries.map(([name, value]) => `${name}=${value}\0`);
  try {
    makeDirs(notesDir(), USER_STATE_DEPTH);
    writeRegularText(path, `${secondOf(sinceMs)} ${secondOf(Date.now())}\n${lines.join("")}`);
  } catch {
    // Without the note the program may not be found when the worker dies.
  }
  return () => drop(path);
}

/** What is noted of processes of this table, by pid. Notes of programs that are gone are removed. */
export function readNotes(rows: readonly ProcessRow[]): Map<number, string> {
  const starts = new Map(rows.map(({ pid, startTicks }) => [pid, startTicks]));
  const found = new Map<number, string>();
  for (const name of listDir(notesDir())) {
    const path = join(notesDir(), name);
    const [, from, to, variables] = /^(\d+) (\d+)\n(.*)$/s.exec(tryRead(path)) ?? [];
    if (variables === undefined) continue;
    const start = starts.get(Number(name)) ?? 0;
    if (start >= Number(from) - SLACK_S && start <= Number(to) + SLACK_S)
      // As bytes, like what ps prints.
      found.set(Number(name), Buffer.from(variables).toString("latin1"));
    else if (secondOf(Date.now()) - Number(to) > YOUNG_S) drop(path);
  }
  return found;
}

function notesDir(): string {
  return join(userStateDir(process.env), "running");
}

function secondOf(ms: number): number {
  return Math.floor(ms / 1000);
}

function tryRead(path: string): string {
  try {
    return readRegularText(path);
  } catch {
    // Its program has ended.
    return "";
  }
}

function drop(path: string): void {
  try {
    fs.rmSync(path, { force: true });
  } catch {
    // The note is ignored: no process with this pid began at that time.
  }
}
