/** Retention of `evidence/`: of nodes that the current plan does not have, and of earlier runs of nodes that it has. */
import fs from "node:fs";
import { join } from "node:path";
import { isExpired } from "../../core/retention.ts";
import type { StateTree } from "../../core/state-tree.ts";
import { removeTree } from "../../host/remove-tree.ts";
import { type CleanPass, type CleanRules, namesIn } from "./clean-pass.ts";

/** @param isInPlan whether the current plan has this node; undefined when that is not known now: nothing is then removed */
export function* cleanEvidence(
  tree: StateTree,
  days: number,
  isInPlan: ((id: string) => boolean) | undefined,
  rules: CleanRules,
): CleanPass {
  if (isInPlan === undefined) return 0;
  let count = 0;
  for (const id of namesIn(tree.evidence)) {
    yield;
    if (id.startsWith(".")) continue;
    const bundle = join(tree.evidence, id);
    const earlier = join(bundle, "earlier");
    const old = isInPlan(id)
      ? [...namesIn(earlier)].map((name) => join(earlier, name)).filter((path) => isOld([path]))
      : [bundle].filter(() => isOld([bundle, earlier]));
    for (const path of old) if (rules.isDryRun === true || (yield* removeTree(path))) count++;
  }
  return count;

  /** Whether the first path is a directory and none of the paths has changed for that long. */
  function isOld(paths: readonly string[]): boolean {
    const stats = paths.map((path) => fs.lstatSync(path, { throwIfNoEntry: false }));
    const lastMs = Math.max(...stats.map((one) => one?.mtimeMs ?? 0));
    return stats[0]?.isDirectory() === true && isExpired(rules.nowMs - lastMs, days);
  }
}
