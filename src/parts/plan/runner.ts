/** Lets a worker run the task of a node phase by phase instead of with one call of its agent. */
import { readBrief } from "../../codec/node-brief.ts";
import { retryPolicyOf } from "../../core/outcome.ts";
import { KvStore } from "../../kv/store.ts";
import { isHeld } from "../../mailbox/claim/claim.ts";
import type { MakeRunner } from "../../worker/runner.ts";
import { runNode } from "./run/run-node.ts";

export const node: MakeRunner = ({ trays, settings, tree }) => {
  const kv = new KvStore(tree.kv, trays.clock, trays.durability);
  return {
    fits: ({ decoded }) =>
      decoded?.task.metadata?.["roadmap"] !== undefined && readBrief(decoded.task) !== undefined,
    run: async ({ claim, stop, startedMonotonicMs }, { onPhase }, assigned) => {
      const brief = assigned === undefined ? undefined : readBrief(assigned.assignment.task);
      if (assigned === undefined || brief === undefined) throw new Error("it is no node");
      return runNode({
        brief,
        name: claim.name,
        ...assigned,
        startedMs: startedMonotonicMs,
        maxAttempts: retryPolicyOf(settings, assigned.assignment.task).maxAttempts,
        evidenceDir: tree.evidence,
        kv,
        clock: trays.clock,
        isDurable: trays.durability === "power",
        isHeld: () => stop.reason !== "fenced" && isHeld(trays, claim),
        onPhase,
      });
    },
    close: () => kv.close(),
  };
};
