/**
 * Which tasks of coding agents are in work: `exits/<id>.json` of the state tree, written before the task is accepted. So a process that
 * starts after a crash knows whose exits are still to be told, also of tasks that ended while no supervisor ran.
 */
import fs from "node:fs";
import { join } from "node:path";
import { loadDocument, replaceDocument } from "../../../host/documents.ts";
import { listDirForSure } from "../../../host/list-dir.ts";

export interface RunNote {
  v: 1;
  task: string;
  /** The agent as the settings have it. */
  agent: string;
  /** The agent whose run it is, in lower case, once that is known: it may have been spawned from `agent`. */
  name?: string;
  /** Submission and attempt of the last run that was seen; null before. */
  run: string | null;
}

const ENDING = ".json";

/** The tasks that are noted. @throws a system error: which they are is then unknown */
export function listNotes(stateDir: string): RunNote[] {
  return listDirForSure(join(stateDir, "exits"))
    .filter((name) => name.endsWith(ENDING))
    .flatMap((name) => {
      const found = loadDocument<RunNote>(join(stateDir, "exits", name));
      return typeof found?.task === "string" && typeof found.agent === "string" ? [found] : [];
    });
}

/** @throws a system error */
export function writeNote(stateDir: string, note: RunNote, isDurable: boolean): void {
  const path = join(stateDir, "exits", `${note.task}${ENDING}`);
  replaceDocument(path, note, { missingMax: 2, isDurable });
}

export function dropNote(stateDir: string, { task }: RunNote): void {
  fs.rmSync(join(stateDir, "exits", `${task}${ENDING}`), { force: true });
}
