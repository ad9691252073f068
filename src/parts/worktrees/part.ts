/** Lets a supervisor remove saves of worktrees, and what `setup` has made for them, when their retention is over. */
import { Housekeeping } from "../../supervisor/environment/housekeeping.ts";
import type { MakePart } from "../../supervisor/part.ts";

export const worktrees: MakePart = ({ env }) =>
  new Housekeeping(
    env,
    "remove old saves of worktrees, and what setup has made for them",
    async (nowMs) => {
      const { tree, trays, settings } = env;
      const { findAll } = await import("./all-worktrees.ts");
      const { cleanSaves } = await import("./clean-saves.ts");
      const { isInUse } = await import("./in-use.ts");
      const all = await findAll(tree.dir, settings);
      const isLive = (id: string): boolean => isInUse(tree, trays, id);
      const { cleanCache } = await import("./clean-cache.ts");
      await cleanCache(all.dir, { days: settings.retention.cache_days, nowMs });
      await cleanSaves(all, { days: settings.retention.saves_days, nowMs, isLive });
    },
  );
