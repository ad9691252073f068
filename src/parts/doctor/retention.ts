/** Checks whether what is past its retention goes: it stays where no supervisor runs, or where it cannot be removed. */
import type { Settings } from "../../core/settings.ts";
import type { StateTree } from "../../core/state-tree.ts";
import { cleanJournals } from "../../supervisor/maintenance/clean-journals.ts";
import type { CleanPass } from "../../supervisor/maintenance/clean-pass.ts";
import { cleanRuns } from "../../supervisor/maintenance/clean-runs.ts";
import { type CheckResult, ok, warned } from "./check.ts";

/** What is due goes with the next sweep, or the one after that: it is worth a word a day later (ms). */
const LATE_MS = 24 * 60 * 60 * 1000;
/** A look takes no longer than this (ms): then a part of it was looked at. */
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
