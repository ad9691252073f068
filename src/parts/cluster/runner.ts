/** Lets a worker send the tasks of a group to other machines, although their agent is one of this tree. */
import type { MakeRunner } from "../../worker/runner.ts";

export const groupsAbroad: MakeRunner = ({ settings: { cluster } }) => {
  const targets = new Map(Object.entries(cluster.groups));
  return {
    fits: ({ decoded }) => {
      const group = targets.size === 0 ? undefined : decoded?.task.group;
      return group !== undefined && targets.has(group);
    },
    run: async ({ decoded }, _hooks, assigned) => {
      const { awayOutcome } = await import("./kind.ts");
      const { targetOf } = await import("./protocol/dispatch.ts");
      const agent = assigned?.agent.settings;
      // A remote agent has its own target.
      const target = agent?.kind === "remote" ? targetOf(agent) : undefined;
      return awayOutcome(target ?? targets.get(decoded?.task.group ?? "") ?? "any");
    },
  };
};
