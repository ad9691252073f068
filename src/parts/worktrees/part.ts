/** Lets a supervisor remove saves of worktrees when their retention is over. */
import { Housekeeping } from "../../supervisor/environment/housekeeping.ts";
import type { MakePart } from "../../supervisor/part.ts";

export const worktrees: MakePart = ({ env }) =>
  new Housekeeping(env, "remove old saves of worktrees", async (nowMs) => {
    const { tree, trays, settings } = env;
    const { findAll } = await import("./all-worktrees.ts");
    const { cleanSaves } = await import("./clean-saves.ts");
    const { isInUse } = await import("./in-use.ts");
    const all = await findAll(tree.dir, settings);
    const isLive = (id: string): boolean => isInUse(tree, trays, id);
    await cleanSaves(all, { days: settings.retention.saves_days, nowMs, isLive });
  });
