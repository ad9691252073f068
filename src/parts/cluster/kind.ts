/** Agents of kind `remote`, whose tasks run at other machines. A worker only puts a task where the bridge finds it. */
import { Agent, type Assignment } from "../../agents/agent.ts";
import type { CodingKind } from "../../agents/coding-kind.ts";
import { type AttemptOutcome, failed } from "../../core/outcome.ts";
import { clusterGate, targetOf } from "./protocol/dispatch.ts";

class RemoteAgent extends Agent {
  async run({ node }: Assignment): Promise<AttemptOutcome> {
    // The packets and checks of a node are files of this tree.
    if (node !== undefined)
      return failed("invalid", "ErrRefused", "a node of the plan does not run at other machines", {
        canRetry: false,
      });
    return awayOutcome(targetOf(this.settings));
  }
}

/** The task waits for its result from a machine that serves this target. */
export function awayOutcome(target: string): AttemptOutcome {
  return {
    kind: "deferred",
    message: `it runs at a machine that serves ${target}`,
    delayMs: null,
    hold: clusterGate(target),
  };
}

export const remote: CodingKind = {
  make: (settings) => new RemoteAgent(settings),
  // Remote runs have no stream in this tree.
  newReader: () => () => [],
  takesMessages: () => false,
};
