/** Runs a schedule's task that opens nodes of the plan again. A run that is repeated after a crash opens no node twice. */
import { ErrInvalidRoadmap, MailchuteError } from "../../core/errors.ts";
import type { ProcessingName } from "../../core/names.ts";
import { type AttemptOutcome, failed } from "../../core/outcome.ts";
import type { AttemptTools } from "../../worker/runner.ts";
import { resetPlan } from "./reset-plan.ts";
import type { ResetChoice } from "./rules/reset.ts";

/** The record names at most this many nodes. */
const NAMED_MAX = 100;

export async function runReset(
  { tree, trays }: Pick<AttemptTools, "tree" | "trays">,
  choice: ResetChoice,
  { id, submission }: ProcessingName,
): Promise<AttemptOutcome> {
  try {
    const { open, left } = await resetPlan({ tree, trays }, choice, {
      // A retry by hand is a new submission, so it resets the plan again.
      key: `${id}@${submission}`,
      check({ problems: [first] }) {
        if (first !== undefined)
          throw new ErrInvalidRoadmap(`line ${first.line}: ${first.message}`, { phase: "reset" });
      },
    });
    const output = {
      opened: open.length,
      nodes: open.slice(0, NAMED_MAX).map((node) => node.id),
      left: left.slice(0, NAMED_MAX).map((node) => node.id),
    };
    return { kind: "completed", output, verdict: "pass", verdictReason: "", exitCode: null };
  } catch (error) {
    if (!(error instanceof MailchuteError)) throw error;
    return failed("reported", error.code, error.message);
  }
}
