/** Tells the coding agents of a tree with mail who they are, which other agents exist, and what is new. Loads its code for the first run. */
import type { MakeBriefing } from "../../../worker/runner.ts";

export const mailBriefing: MakeBriefing = async (tools, assigned) => {
  if (!assigned.assignment.settings.mail_enabled) return undefined;
  try {
    const { briefRun } = await import("./run-briefing.ts");
    return await briefRun(tools, assigned);
  } catch {
    // The run can do its task without a briefing. The delivery of mail reports mail that cannot be read.
    return undefined;
  }
};
