/** Puts the programs of runs behind walls. The code is loaded for the first of them, because most pools have none. */
import type { MakeWalls } from "../../agents/walls.ts";

export const sandbox: MakeWalls = (settings, agent) => ({
  async enter(start, assignment) {
    const { enterWalls } = await import("./walls.ts");
    return enterWalls(settings, agent, start, assignment);
  },
});
