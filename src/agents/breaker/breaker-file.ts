/**
 * What is known of the last runs of an agent, as a file of the state tree: `breakers/<agent>.json`. All workers write it, so it counts
 * the runs of all workers, and it survives the supervisor. Removing the file ends the pause, as `mailchute resume --agent` does.
 */
import { createHash } from "node:crypto";
import type { Failed } from "../../core/outcome.ts";
import { Documents } from "../../host/document-store.ts";
import { type BreakerDocument, breaker, noteFailure } from "./breaker-rules.ts";

const PLAIN = /^[A-Za-z0-9-]{1,60}$/;

const breakersOf = (stateDir: string): Documents<BreakerDocument> =>
  new Documents(stateDir, "breakers", breaker);

/** The gate in the file names of tasks that wait for this agent: see stage "hold" in `names.ts`. */
export function pausedHold(agent: string): string {
  return `paused-${keyOf(agent)}`;
}

/** The agents that are paused now. */
export function pausedAgents(stateDir: string): BreakerDocument[] {
  return breakersOf(stateDir)
    .readAll()
    .flatMap(([, one]) => (one.paused_at === null ? [] : [one]));
}

export class BreakerFile {
  private readonly all: Documents<BreakerDocument>;
  private readonly key: string;

  constructor(
    stateDir: string,
    private readonly agent: string,
  ) {
    this.all = breakersOf(stateDir);
    this.key = keyOf(agent);
  }

  /** Undefined when it is not paused. */
  paused(): BreakerDocument | undefined {
    const found = this.all.read(this.key);
    return found?.paused_at == null ? undefined : found;
  }

  /**
   * Called when a run has ended.
   * @param failed undefined when it succeeded
   * @returns the pause, if this run caused it
   */
  async note(taskId: string, failed: Failed | undefined): Promise<BreakerDocument | undefined> {
    // Most runs succeed, and no failure came before them. Then there is nothing to write.
    if (failed === undefined && this.all.read(this.key) === undefined) return undefined;
    let pause: BreakerDocument | undefined;
    await this.all.update(this.key, (before) => {
      if (before?.paused_at != null) return before;
      const after = failed && noteFailure(before, this.agent, taskId, failed, Date.now());
      if (after?.paused_at != null) pause = after;
      return after;
    });
    return pause;
  }

  /** Forgets the failures. @returns the pause that this ends */
  resume(): BreakerDocument | undefined {
    const found = this.paused();
    this.all.remove(this.key);
    return found;
  }
}

/** An agent in names of files. Its name may hold any character, so some names are hashed. */
export function keyOf(agent: string): string {
  return PLAIN.test(agent)
    ? agent
    : createHash("sha256").update(agent, "utf8").digest("hex").slice(0, 32);
}
