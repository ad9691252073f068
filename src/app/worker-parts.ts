/** Lists what a worker can run besides plain tasks, the kinds of its agents, and where they may run. */
import { batch } from "../parts/batch/runner.ts";
import { landing } from "../parts/landing/runner.ts";
import { node } from "../parts/plan/runner.ts";
import { worktrees } from "../parts/worktrees/load.ts";
import type { MakeRunner, WorkerParts } from "../worker/runner.ts";
import type { LoadWorkspaces } from "../worker/workspace.ts";
import { AGENT_KINDS } from "./agent-kinds.ts";

const RUNNERS: readonly MakeRunner[] = [batch, node, landing];
const WORKSPACES: readonly LoadWorkspaces[] = [worktrees];

export const WORKER_PARTS: WorkerParts = {
  runners: RUNNERS,
  kinds: AGENT_KINDS,
  workspaces: WORKSPACES,
};
