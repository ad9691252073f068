/** Hands a branch over to the person's own program instead of landing it. */
import { join } from "node:path";
import { timeoutOf } from "../../agents/agent.ts";
import { runProgram } from "../../agents/program.ts";
import { type AttemptOutcome, failed } from "../../core/outcome.ts";
import type { LandingOrder } from "../../worker/landing-files.ts";
import type { AssignedAgent } from "../../worker/runner.ts";
import { success } from "./landing-outcomes.ts";

/** Runs the user's own program, which takes over the branch, for example as a pull request. */
export async function handOver(
  { agent, assignment }: AssignedAgent,
  order: LandingOrder,
  tip: string,
): Promise<AttemptOutcome> {
  const { branch, base, target, command, worktree, prefix } = order;
  const { runDir } = assignment;
  const limitMs = timeoutOf(assignment, agent.settings);
  const end = await runProgram(
    // It is the person's own program, and works for the person.
    { ...assignment, walls: undefined, workspace: { cwd: join(worktree, prefix), env: {} } },
    {
      argv: command,
      stdoutLog: join(runDir, "stdout.log"),
      stderrLog: join(runDir, "stderr.log"),
      limitMs,
      moreEnvironment: () => ({
        MAILCHUTE_BRANCH: branch,
        MAILCHUTE_BASE: base,
        MAILCHUTE_TARGET: target,
      }),
    },
  );
  if (end.outcome !== undefined) return end.outcome;
  if (end.exitCode === 0) return success(order, "handed_over", tip, `handed over to ${command[0]}`);
  const text = `land_command: ${JSON.stringify(command[0])} ended with exit code ${end.exitCode}`;
  return failed("landing", "ErrLanding", text, { exitCode: end.exitCode });
}
