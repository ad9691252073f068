/** Lets a supervisor remove the remains of landings when their retention is over. */
import { Housekeeping } from "../../supervisor/environment/housekeeping.ts";
import type { MakePart } from "../../supervisor/part.ts";

export const landingRetention: MakePart = ({ env }) =>
  new Housekeeping(env, "remove what is left of old landings", async (nowMs) => {
    const { tree, trays, settings } = env;
    const { cleanLandings } = await import("./clean-landings.ts");
    await cleanLandings({
      stateDir: tree.dir,
      trays,
      days: settings.retention.landed_days,
      nowMs,
    });
  });
