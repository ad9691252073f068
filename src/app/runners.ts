/** What a worker runs in another way than by calling the task's agent once. */
import { batch } from "../parts/batch/runner.ts";
import { node } from "../parts/plan/runner.ts";
import type { MakeRunner } from "../worker/runner.ts";

export const RUNNERS: readonly MakeRunner[] = [batch, node];
