/** The port for a part that gives runs of coding agents a briefing beside their tasks. Types only. */
import type { Briefing } from "../agents/briefing.ts";
import type { AssignedAgent, AttemptTools } from "./runner.ts";

/** Never rejects. @returns undefined when this run gets no briefing */
export type MakeBriefing = (
  tools: Pick<AttemptTools, "tree">,
  assigned: AssignedAgent,
) => Promise<Briefing | undefined>;
