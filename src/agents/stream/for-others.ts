/** Decides how a task leaves an agent that is closed: it waits there, or another one of its agents takes it over. */
import { QUOTA_GATE } from "../../core/gates.ts";
import { agentsOf, matchAgent } from "../../core/matching.ts";
import type { AttemptOutcome } from "../../core/outcome.ts";
import { stateTree } from "../../core/state-tree.ts";
import type { Assignment } from "../agent.ts";
import { BreakerFile, pausedHold } from "../breaker/breaker-file.ts";
import { pauseText, resumeText } from "../breaker/breaker-rules.ts";
import { chosenAgent } from "../chosen-agent.ts";
import { sessionAt } from "./session-file.ts";

/** The gate in the names of tasks that wait until one of their agents may run them: see stage "hold" in `names.ts`. It is never closed. */
const AGENTS_HOLD = "agents";
/** Work that cannot wait at a gate, such as a line of a batch, tries again after this time (ms). */
const PAUSED_AGAIN_MS = 60_000;

/**
 * A task of several agents does not wait for this one, and a failure that has paused this one is not its own. But a session that has
 * begun waits at the gate of its account: see `chooseAgent`.
 * @param key of the session @param ended how the run of this agent ended
 */
export function forOthers(
  assignment: Assignment,
  agent: string,
  key: string,
  ended: AttemptOutcome,
): AttemptOutcome {
  const { stateDir } = assignment;
  if (!hasOthers(assignment)) return ended;
  const paused = ended.kind === "failed" ? pausedOutcome(stateDir, agent) : undefined;
  const outcome = paused ?? ended;
  if (outcome.kind !== "deferred" || outcome.isOfAgent !== true) return outcome;
  const session = sessionAt(stateTree(stateDir).sessions, key);
  const hasBegun = session?.agent === agent && session.session_id !== null;
  const waits = hasBegun && outcome.hold?.startsWith(QUOTA_GATE) === true;
  return waits ? outcome : { ...outcome, hold: AGENTS_HOLD };
}

/** Whether another agent may take the work over. The supervisor has chosen one then: it chooses none for a line of a batch. */
function hasOthers({ settings, stateDir, task }: Assignment): boolean {
  if (agentsOf(matchAgent(task, settings.agents)).length < 2) return false;
  return chosenAgent(stateTree(stateDir).sessions, task.id) !== undefined;
}

/** The task of a paused agent waits, without a worker, until a person lets the agent go on. */
export function pausedOutcome(stateDir: string, agent: string): AttemptOutcome | undefined {
  const paused = new BreakerFile(stateDir, agent).paused();
  if (paused === undefined) return undefined;
  const message = `${pauseText(paused)}; when it is mended: ${resumeText(paused)}`;
  return {
    kind: "deferred",
    message,
    delayMs: PAUSED_AGAIN_MS,
    hold: pausedHold(agent),
    isOfAgent: true,
  };
}
