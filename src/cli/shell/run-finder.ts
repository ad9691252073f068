/** The port for a part that knows agents by their names: which task an agent runs. Types only. */
import type { Context } from "./command-spec.ts";

export interface NamedRuns {
  /** The ids of the tasks that it runs now. */
  running: string[];
  /** The task that it ran last, as far as that is known. */
  last: string | undefined;
}

/** @returns undefined when there is no agent of this name. Reads only */
export type RunFinder = (
  ctx: Pick<Context, "stateDir" | "env" | "cwd">,
  name: string,
) => Promise<NamedRuns | undefined>;
