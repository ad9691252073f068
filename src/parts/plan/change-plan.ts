/** Lets a command or the run of a reset change the plan's file. People and a supervisor may change it at the same time. */
import { basename, dirname, join } from "node:path";
import { underLock } from "../../host/file-lock.ts";
import { makeDirs } from "../../host/make-dirs.ts";
import { applyEdits, type RoadmapEdit } from "./edit/edit.ts";
import { RoadmapFile } from "./file/roadmap-file.ts";
import { parseRoadmap, type RoadmapDocument } from "./read/document.ts";

export interface ChangedPlan {
  before: RoadmapDocument;
  after: RoadmapDocument;
  /** Paths of people's texts that lost to a later save. They are kept beside the plan. */
  conflicts: readonly string[];
}

/**
 * Makes edits in the file, all or none. If a person saves it at the same time, the edits are made in that person's text.
 * @param path of the plan
 * @param plan returns the edits for a text; called again if a person saved another text in between. Its errors are passed on
 * @throws the errors of `applyEdits`, ErrIo
 */
export async function changePlan(
  path: string,
  durability: "power" | "process",
  plan: (doc: RoadmapDocument) => readonly RoadmapEdit[] | Promise<readonly RoadmapEdit[]>,
): Promise<ChangedPlan> {
  const file = new RoadmapFile(path, { durability });
  return withRoadmapLock(path, async () => {
    const conflicts = [...file.replaced.recoverLeftovers().conflicts];
    let before = parseRoadmap("");
    let after = before;
    await file.update(async (text) => {
      before = parseRoadmap(text);
      after = applyEdits(before, await plan(before));
      return after.text;
    });
    conflicts.push(...(await file.replaced.settle()).conflicts);
    return { before, after, conflicts };
  });
}

/**
 * Keeps two mailchute processes from changing the plan at the same time. It only saves retries: without it no edit is lost. If the
 * lock stays taken for too long, runs `work` without it.
 */
export async function withRoadmapLock<T>(path: string, work: () => Promise<T>): Promise<T> {
  const dir = join(dirname(path), ".tmp");
  makeDirs(dir);
  return underLock(join(dir, `${basename(path)}.lock`), work);
}
