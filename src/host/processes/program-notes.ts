/**
 * Notes of running programs, for systems that hide the variables of some programs. A note says when a process began, and which of our
 * variables it has. A worker writes the note when it has started a program, and removes it at the end. When the worker dies, the process
 * that ends its programs finds the note.
 */
import fs from "node:fs";
import { join } from "node:path";
import { listDir } from "../list-dir.ts";
import { makeDirs } from "../make-dirs.ts";
import { readRegularText, writeRegularText } from "../regular-file.ts";
import { USER_STATE_DEPTH, userStateDir } from "../user-state.ts";
import type { ProcessRow } from "./process-source.ts";

/** The variables that say which run of which tree a process belongs to. */
const NOTED = /^MAILCHUTE_(?:LEASE|STATE|TASK_FILE)$/;
/** Times may differ by this much, because they are whole seconds and the clock may be adjusted. */
const SLACK_S = 1;
/** A note younger than this (s) may belong to a process that began after the table was read. */
const YOUNG_S = 10;

/**
 * @param sinceMs a time before the program was started (epoch ms)
 * @returns a function that removes the note; it never throws
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

/** The noted variables of the processes in this table, by pid. Removes notes of programs that are gone. */
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
