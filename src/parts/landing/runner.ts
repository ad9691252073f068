/** Lets a worker run the landing of a task. Its code is loaded for the first one. */
import type { MakeRunner } from "../../worker/runner.ts";
import { LANDING_TYPE } from "./landing-type.ts";

export const landing: MakeRunner = (tools) => ({
  fits: ({ decoded }) =>
    decoded?.task.type === LANDING_TYPE && typeof decoded.task["landing_of"] === "string",
  run: async (_attempt, _hooks, assigned) => {
    if (assigned === undefined) throw new Error("a landing has an agent");
    const { Landing } = await import("./land.ts");
    return new Landing(tools, assigned).run();
  },
});
