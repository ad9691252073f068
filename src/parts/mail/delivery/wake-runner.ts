/** Lets a worker check at the start of a wake-up whether the agent still has unread mail. Loads its code for the first wake-up. */

import { WAKE_TYPE } from "../../../core/callback.ts";
import type { MakeRunner } from "../../../worker/runner.ts";

export const wakes: MakeRunner = (tools) => ({
  fits: ({ decoded }) => decoded?.task.type === WAKE_TYPE && decoded.task.id.startsWith("wake."),
  run: async (_attempt, _hooks, assigned) => {
    if (assigned === undefined) throw new Error("a wake-up has an agent");
    return (await import("./wake-run.ts")).runWake(tools, assigned);
  },
});
