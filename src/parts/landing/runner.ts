/** Lets a worker run the landing of a task and the review before it. Their code is loaded for the first of them. */
import type { MakeRunner } from "../../worker/runner.ts";
import { LANDING_TYPE, REVIEW_TYPE } from "./landing-type.ts";

/** The field that names the task whose work lands or is reviewed. */
const OF: Readonly<Record<string, string>> = {
  [LANDING_TYPE]: "landing_of",
  [REVIEW_TYPE]: "review_of",
};

export const landing: MakeRunner = (tools) => ({
  fits: ({ decoded }) => {
    const field = OF[decoded?.task.type ?? ""];
    return field !== undefined && typeof decoded?.task[field] === "string";
  },
  run: async ({ decoded }, _hooks, assigned) => {
    if (assigned === undefined) throw new Error("a landing and a review have an agent");
    if (decoded?.task.type === REVIEW_TYPE)
      return (await import("./review-run.ts")).runReview(tools, assigned);
    const { Landing } = await import("./land.ts");
    return new Landing(tools, assigned).run();
  },
});
