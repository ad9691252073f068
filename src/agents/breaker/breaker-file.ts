/**
 * What is known of the last runs of an agent, as a file of the state tree: `breakers/<agent>.json`. All workers write it, so it counts
 * the runs of all workers, and it survives the supervisor. Removing the file ends the pause, as `mailchute resume --agent` does.
 */
import { createHash } from "node:crypto";
import { join } from "node:path";
import type { Failed } from "../../core/outcome.ts";
import { readDocument, removeDocument, replaceDocument } from "../../host/documents.ts";
import { lockFile } from "../../host/file-lock.ts";
import { listDir } from "../../host/list-dir.ts";
import { makeDirs } from "../../host/make-dirs.ts";
import { type BreakerDocument, noteFailure } from "./breaker-rules.ts";

const PLAIN = /^[A-Za-z0-9-]{1,60}$/;

const breakersDir = (stateDir: string): string => join(stateDir, "breakers");

/** The gate in the file names of tasks that wait for this agent: see stage "hold" in `names.ts`. */
export function pausedHold(agent: string): string {
  return `paused-${keyOf(agent)}`;
}

/** The agents that are paused now. */
export function pausedAgents(stateDir: string): BreakerDocument[] {
  const dir = breakersDir(stateDir);
  return listDir(dir).flatMap((name) => {
    const found = name.endsWith(".json") ? readBreaker(join(dir, name)) : undefined;
    return found === undefined || found.paused_at === null ? [] : [found];
  });
}

export class BreakerFile {
  private readonly dir: string;
  private readonly path: string;

  constructor(
    stateDir: string,
    private readonly agent: string,
  ) {
    this.dir = breakersDir(stateDir);
    this.path = join(this.dir, `${keyOf(agent)}.json`);
  }

  /** Undefined when it is not paused. */
  paused(): BreakerDocument | undefined {
    const found = readBreaker(this.path);
    return found === undefined || found.paused_at === null ? undefined : found;
  }

  /**
   * Called when a run has ended.
   * @param failed undefined when it succeeded
   * @returns the pause, if this run caused it
   */
  async note(taskId: string, failed: Failed | undefined): Promise<BreakerDocument | undefined> {
    // Most runs succeed, and no failure came before them. Then there is nothing to write.
    if (failed === undefined && readBreaker(this.path) === undefined) return undefined;
    makeDirs(this.dir, 1);
    const release = await lockFile(`${this.path}.lock`);
    try {
      const before = readBreaker(this.path);
      if (before !== undefined && before.paused_at !== null) return undefined;
      if (failed === undefined) {
        removeDocument(this.path);
        return undefined;
      }
      const after = noteFailure(before, this.agent, taskId, failed, Date.now());
      replaceDocument(this.path, after);
      return after.paused_at === null ? undefined : after;
    } finally {
      await release?.();
    }
  }

  /** Forgets the failures. @returns the pause that this ends */
  resume(): BreakerDocument | undefined {
    const found = this.paused();
    removeDocument(this.path);
    return found;
  }
}

/** A missing or broken file means that there is no pause. */
function readBreaker(path: string): BreakerDocument | undefined {
  const found = readDocument<BreakerDocument>(path);
  if (found?.v !== 1 || !Number.isInteger(found.count)) return undefined;
  const texts = [found.agent, found.failure, found.task_id, found.message];
  const isGood =
    texts.every((text) => typeof text === "string") &&
    (found.paused_at === null || typeof found.paused_at === "string");
  return isGood ? found : undefined;
}

/** The file name for an agent. An agent's name may hold any character, so some names are hashed. */
function keyOf(agent: string): string {
  return PLAIN.test(agent)
    ? agent
    : createHash("sha256").update(agent, "utf8").digest("hex").slice(0, 32);
}
