/** The port for a part that knows which task an agent runs, by the name of the agent. Types only. */
import type { Context } from "./command-spec.ts";

export interface NamedRuns {
  /** The ids of the tasks that it runs now. */
  running: string[];
  /** The last task that it ran, if that is known. */
  last: string | undefined;
}

/** @returns undefined when there is no agent of this name. Reads only */
export type RunFinder = (
  ctx: Pick<Context, "stateDir" | "env" | "cwd">,
  name: string,
) => Promise<NamedRuns | undefined>;
