/** The supervisor, together with all its parts. */
import { accounts } from "../parts/accounts/part.ts";
import { attach } from "../parts/attach/part.ts";
import { breaker } from "../parts/breaker/part.ts";
import { cluster } from "../parts/cluster/part.ts";
import { fallback } from "../parts/fallback/part.ts";
import { groups } from "../parts/groups/part.ts";
import { landing } from "../parts/landing/part.ts";
import { landingRetention } from "../parts/landing/retention.ts";
import { mail } from "../parts/mail/part.ts";
import { memory } from "../parts/memory/part.ts";
import { metrics } from "../parts/metrics/part.ts";
import { notify } from "../parts/notify/part.ts";
import { plan } from "../parts/plan/part.ts";
import { plugins } from "../parts/plugins/part.ts";
import { questions } from "../parts/questions/part.ts";
import { poolGroup } from "../parts/run-limits/part.ts";
import { sandboxGuard } from "../parts/sandbox/part.ts";
import { schedules } from "../parts/schedules/part.ts";
import { service } from "../parts/service/part.ts";
import { worktrees } from "../parts/worktrees/part.ts";
import { worktreeRoom } from "../parts/worktrees/room-gate.ts";
import type { MakePart } from "../supervisor/part.ts";
import {
  type RunSummary,
  type SupervisorOptions,
  Supervisor as SupervisorWithoutParts,
} from "../supervisor/supervisor.ts";
import { FOLLOW } from "./follow.ts";
import { loadPlugins } from "./plugins.ts";

export const PARTS: readonly MakePart[] = [
  plan,
  accounts,
  attach,
  breaker,
  fallback,
  cluster,
  groups,
  landing,
  landingRetention,
  mail,
  metrics,
  notify,
  questions,
  poolGroup,
  sandboxGuard,
  plugins,
  schedules,
  service,
  worktrees,
  worktreeRoom,
  // Last: it counts only starts that nothing else holds back.
  memory,
];

export class Supervisor extends SupervisorWithoutParts {
  /** @throws ErrMailboxDir when the state tree cannot be used */
  constructor(options: SupervisorOptions) {
    super(options, PARTS, FOLLOW[0]);
  }

  /** @throws ErrPlugin before it begins; otherwise as without parts */
  override async run(): Promise<RunSummary> {
    await loadPlugins(this.settings, this.tree.dir);
    return await super.run();
  }
}
