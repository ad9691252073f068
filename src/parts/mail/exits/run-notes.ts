/**
 * Notes of the tasks of coding agents that are in work: `exits/<id>.json` of the state tree, written before the task is accepted. So a
 * process that starts after a crash knows which exits it must report, even of tasks that ended while no supervisor ran.
 */
import fs from "node:fs";
import { join } from "node:path";
import { loadDocument, replaceInTree } from "../../../host/documents.ts";
import { listDirForSure } from "../../../host/list-dir.ts";

export interface RunNote {
  v: 1;
  task: string;
  /** The name of the agent in the settings. */
  agent: string;
  /** The agent that runs the task, in lower case, once it is known. It may have been spawned from `agent`. */
  name?: string;
  /** Submission and attempt of the last run that was seen; null if none was seen. */
  run: string | null;
}

const ENDING = ".json";

/** The noted tasks. @throws a system error: then it is unknown which tasks are noted */
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
  replaceInTree(stateDir, path, note, { isDurable });
}

export function dropNote(stateDir: string, { task }: RunNote): void {
  fs.rmSync(join(stateDir, "exits", `${task}${ENDING}`), { force: true });
}
