/** Checks whether files are kept beyond their retention. That happens when no supervisor runs, or when they cannot be removed. */
import type { Settings } from "../../core/settings.ts";
import type { StateTree } from "../../core/state-tree.ts";
import { cleanJournals } from "../../supervisor/maintenance/clean-journals.ts";
import type { CleanPass } from "../../supervisor/maintenance/clean-pass.ts";
import { cleanRuns } from "../../supervisor/maintenance/clean-runs.ts";
import { type CheckResult, ok, warned } from "./check.ts";

/** The next sweeps remove what is due. Files that are still there a day later are reported (ms). */
const LATE_MS = 24 * 60 * 60 * 1000;
/** The two counts together end after this time (ms). */
const LOOK_MS_MAX = 2000;

export function checkRetention(
  tree: StateTree,
  retention: Settings["retention"],
  nowMs: number,
): CheckResult {
  const rules = { nowMs: nowMs - LATE_MS, isDryRun: true };
  const untilMs = performance.now() + LOOK_MS_MAX;
  const runs = countOf(cleanRuns(tree, retention, rules), untilMs);
  const journals = countOf(cleanJournals(tree, retention, rules), untilMs);
  if (runs + journals === 0) return ok("retention", "nothing is kept beyond its time");
  return warned(
    "retention",
    `kept beyond their time: ${runs} directories in ${tree.runs}, ${journals} rotated journals`,
    "mailchute clean removes them, as a running supervisor does; what stays then belongs to another user",
  );
}

function countOf(pass: CleanPass, untilMs: number): number {
  while (performance.now() < untilMs) {
    const { done, value } = pass.next();
    if (done === true) return value;
  }
  pass.return(0);
  return 0;
}
