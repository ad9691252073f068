/** Tells coding agents of a tree with mail who they are, who else is there, and what is new. Loads its code for the first of them. */
import type { MakeBriefing } from "../../../worker/briefing.ts";

export const mailBriefing: MakeBriefing = async (tools, assigned) => {
  if (!assigned.assignment.settings.mail_enabled) return undefined;
  try {
    const { briefRun } = await import("./run-briefing.ts");
    return await briefRun(tools, assigned);
  } catch {
    // Its task can be done without: mail that cannot be read is told of by what delivers it.
    return undefined;
  }
};
