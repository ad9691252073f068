/** The port for a part that tells runs of coding agents something beside their tasks. Types only. */
import type { Briefing } from "../agents/briefing.ts";
import type { AssignedAgent, AttemptTools } from "./runner.ts";

/** Never rejects. @returns undefined when this run is told nothing */
export type MakeBriefing = (
  tools: Pick<AttemptTools, "tree">,
  assigned: AssignedAgent,
) => Promise<Briefing | undefined>;
