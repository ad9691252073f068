/** Lets a worker run a node's task phase by phase, not with one call of its agent. Loads the code when the first such task runs. */
import { readBrief } from "../../codec/node-brief.ts";
import { retryPolicyOf } from "../../core/outcome.ts";
import type { KvStore } from "../../kv/store.ts";
import { isHeld } from "../../mailbox/claim/claim.ts";
import type { MakeRunner } from "../../worker/runner.ts";

export const node: MakeRunner = ({ trays, settings, tree }) => {
  let kv: KvStore | undefined;
  return {
    fits: ({ decoded }) =>
      decoded?.task.metadata?.["roadmap"] !== undefined && readBrief(decoded.task) !== undefined,
    run: async ({ claim, stop, startedMonotonicMs }, { onPhase }, assigned) => {
      const brief = assigned === undefined ? undefined : readBrief(assigned.assignment.task);
      if (assigned === undefined || brief === undefined)
        throw new Error("this task is not a node of the plan");
      const { runNode } = await import("./run/run-node.ts");
      const { KvStore: Store } = await import("../../kv/store.ts");
      kv ??= new Store(tree.kv, trays.clock, trays.durability);
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
    close: () => kv?.close(),
  };
};
