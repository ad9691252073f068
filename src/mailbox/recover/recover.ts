/**
 * Recover: takes back the tasks that dead processes left in `processing/`, and finishes settlements that they had begun. Any
 * number of recoverers may run at once: each step is a rename or link that only one of them can win.
 */
import { readSkipped, type SkippedTasks } from "../find/skipped-records.ts";
import { finishRetry } from "../retry/retry.ts";
import { finishQuarantine, hasReason } from "../settle/quarantine.ts";
import { finishAside } from "../submit/duplicates.ts";
import { publishCommitted, tidySettled } from "./finish-settlement.ts";
import { reclaim, reclaimForeign } from "./reclaim.ts";
import type { Recoverer, RecoverStep } from "./recoverer.ts";

/** Takes one step. Losing a race to another recoverer is no error. */
export async function recoverStep(r: Recoverer, step: RecoverStep): Promise<void> {
  switch (step.kind) {
    case "reclaim":
      return reclaim(r, step);
    case "publish":
      return publishCommitted(r, step.claim);
    case "tidy":
      await tidySettled(r, step.claim);
      return;
    case "finish":
      if (step.name.stage === "bad") {
        // A file without a reason was only taken aside, perhaps as a resend.
        if (!hasReason(r.trays, step.name) && finishAside(r.trays, step.name) !== "other") return;
        await finishQuarantine(r.trays, step.name);
        r.onRecovered({ action: "quarantined", name: step.name });
      } else {
        // One search serves all retries of a round.
        const skipped = (): Promise<SkippedTasks> => (r.skipped ??= readSkipped(r.trays));
        if ((await finishRetry(r.trays, step.name, { skipped })) === "later") return;
        r.onRecovered({ action: "resubmitted", name: step.name });
      }
      return;
    case "foreign":
      return reclaimForeign(r, step.id);
  }
}
