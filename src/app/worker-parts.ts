/** Lists what a worker can run besides plain tasks, and the kinds of agents besides `exec` and `module`. */
import { batch } from "../parts/batch/runner.ts";
import { node } from "../parts/plan/runner.ts";
import type { MakeRunner, WorkerParts } from "../worker/runner.ts";
import { AGENT_KINDS } from "./agent-kinds.ts";

const RUNNERS: readonly MakeRunner[] = [batch, node];

export const WORKER_PARTS: WorkerParts = { runners: RUNNERS, kinds: AGENT_KINDS };
