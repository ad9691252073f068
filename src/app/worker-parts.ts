/**
 * Lists the parts of a worker: what it runs besides plain tasks, its kinds of agents, its workspaces, limits and walls, the requests that a
 * run may make, the briefing that a run gets, and its meter.
 */
import type { MakeMeter } from "../agents/meter.ts";
import type { MakeLimiter } from "../agents/run-limiter.ts";
import type { MakeWalls } from "../agents/walls.ts";
import { batch } from "../parts/batch/runner.ts";
import { groupsAbroad } from "../parts/cluster/runner.ts";
import { landing } from "../parts/landing/runner.ts";
import { mailBriefing } from "../parts/mail/briefing/load.ts";
import { wakes } from "../parts/mail/delivery/wake-runner.ts";
import { mailRequests } from "../parts/mail/requests/taker.ts";
import { meter } from "../parts/meter/meter.ts";
import { resets } from "../parts/plan/reset-runner.ts";
import { node } from "../parts/plan/runner.ts";
import { runLimits } from "../parts/run-limits/limiter.ts";
import { sandbox } from "../parts/sandbox/load.ts";
import { worktrees } from "../parts/worktrees/load.ts";
import type { RequestTaker } from "../worker/request-taker.ts";
import type { LoadWorkspaces, MakeBriefing, MakeRunner, WorkerParts } from "../worker/runner.ts";
import { agentKinds } from "./agent-kinds.ts";
import { FOLLOW } from "./follow.ts";

const RUNNERS: readonly MakeRunner[] = [batch, node, landing, wakes, resets, groupsAbroad];
const WORKSPACES: readonly LoadWorkspaces[] = [worktrees];
const REQUESTS: readonly RequestTaker[] = [mailRequests];
const BRIEFINGS: readonly MakeBriefing[] = [mailBriefing];
const LIMITERS: readonly MakeLimiter[] = [runLimits];
const WALLS: readonly MakeWalls[] = [sandbox];
const METERS: readonly MakeMeter[] = [meter];

export const WORKER_PARTS: WorkerParts = {
  runners: RUNNERS,
  kinds: agentKinds,
  workspaces: WORKSPACES,
  requests: REQUESTS,
  briefings: BRIEFINGS,
  limiters: LIMITERS,
  walls: WALLS,
  meters: METERS,
  follow: FOLLOW,
};
