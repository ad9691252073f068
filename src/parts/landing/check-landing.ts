/** Runs the check of a landing: `setup` and `verify` of its task on what would land. */
import { dirname, join } from "node:path";
import { timeoutOf } from "../../agents/agent.ts";
import type { AttemptOutcome } from "../../core/outcome.ts";
import type { CleanCheckout } from "../../git/clean-checkout.ts";
import { beginRun, changeText, endRun, type SettingsChange } from "../../git/kept-settings.ts";
import type { Repository } from "../../git/repository.ts";
import { say } from "../../host/say.ts";
import { Alerts } from "../../journal/alerts.ts";
import { runVerify } from "../../worker/check.ts";
import { type LandingOrder, stateOf } from "../../worker/landing-files.ts";
import type { AssignedAgent, AttemptTools } from "../../worker/runner.ts";
import { runSetup } from "../../worker/setup.ts";
import { cleanEnvironment, programsSince } from "./clean-environment.ts";
import { forPerson } from "./landing-outcomes.ts";
import { type Change, runChecks } from "./protect-check.ts";
import { programsText } from "./why-not.ts";

/** Runs `setup` and `verify` of the task. @returns undefined when all is well */
export async function checkLanding(
  tools: AttemptTools,
  assigned: AssignedAgent,
  order: LandingOrder,
  repository: Repository,
  worktree: CleanCheckout,
  change: Change,
): Promise<AttemptOutcome | undefined> {
  const { checks, prefix } = order;
  if (checks.verify === undefined) return undefined;
  const { agent } = assigned;
  const env = environmentOf(assigned, order);
  const fresh = freshPrograms(assigned, order);
  const { accepted_files: accepted } = stateOf(tools.tree.dir, order);
  if (fresh.length > 0 && accepted === undefined) return forPerson(programsText(order, fresh));
  const workspace = { cwd: join(worktree.path, prefix), env, root: worktree.path };
  const task = { ...assigned.assignment.task, ...checks };
  const assignment = { ...assigned.assignment, task, workspace };
  const run = { id: task.id ?? "", tree: assignment.stateDir };
  // The checks are code of the work. What they change in the settings is not obeyed.
  tell(tools, order.repository, await beginRun(order.repository, run));
  try {
    const fault = await runSetup({ agent, assignment });
    if (fault !== undefined) return fault;
    const { clock } = tools.trays;
    const limitMs = timeoutOf(assignment, agent.settings);
    return await runChecks(order, repository, worktree, change, (verify) =>
      runVerify({ ...assignment, task: { ...task, verify } }, limitMs, clock.monotonicMs(), () =>
        clock.monotonicMs(),
      ),
    );
  } finally {
    tell(tools, order.repository, await endRun(order.repository, run));
  }
}

function environmentOf(
  { assignment }: AssignedAgent,
  { worktree, repository, verify_from: isClean }: LandingOrder,
): Record<string, string> {
  const { runDir, stateDir } = assignment;
  const places = [stateDir, dirname(worktree), dirname(repository)];
  return isClean === undefined ? {} : cleanEnvironment(process.env, runDir, places);
}

/** Programs that a clean check would run, and that have changed since the work began. */
export function freshPrograms(assigned: AssignedAgent, order: LandingOrder): string[] {
  if (order.verify_from === undefined) return [];
  return programsSince(environmentOf(assigned, order)["PATH"] ?? "", order.began_ms ?? 0);
}

function tell(
  { tree, trays }: AttemptTools,
  commonDir: string,
  found: readonly SettingsChange[],
): void {
  for (const change of found)
    new Alerts(tree.alerts, trays.clock, say).alert(
      "repository_settings",
      changeText(commonDir, change),
    );
}
