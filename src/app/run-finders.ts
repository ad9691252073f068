/** Lists the parts that know agents by their names, for the command `logs`. */
import type { RunFinder } from "../cli/shell/run-finder.ts";
import { findRuns } from "../parts/mail/verbs/find-runs.ts";

export const RUN_FINDERS: readonly RunFinder[] = [findRuns];
