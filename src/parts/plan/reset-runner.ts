/** Lets a worker run a schedule's task that opens nodes of the plan again. Loads the code when the first such task runs. */
import { isObject } from "../../core/json-object.ts";
import type { Task } from "../../core/task.ts";
import type { MakeRunner } from "../../worker/runner.ts";
import type { ResetChoice } from "./rules/reset.ts";

export const resets: MakeRunner = (tools) => ({
  fits: ({ decoded }) => decoded !== undefined && choiceIn(decoded.task) !== undefined,
  run: async ({ claim, decoded }) => {
    const choice = decoded === undefined ? undefined : choiceIn(decoded.task);
    if (choice === undefined) throw new Error("this task does not reset a plan");
    return (await import("./reset-plan.ts")).runReset(tools, choice, claim.name);
  },
});

/** What a schedule wrote into `metadata.roadmap_reset`; undefined for other tasks. */
function choiceIn({ id, metadata }: Task): ResetChoice | undefined {
  const said = metadata?.["roadmap_reset"];
  const schedule = metadata?.["schedule"];
  if (!isObject(said) || !isObject(schedule)) return undefined;
  if (!id.startsWith(`${String(schedule["name"])}.`)) return undefined;
  const { nodes, failed, downstream } = said;
  return {
    ...(Array.isArray(nodes) ? { ids: nodes.map(String) } : {}),
    onlyFailed: failed === true,
    downstream: downstream === true,
  };
}
