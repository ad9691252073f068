/**
 * Tells a person what to do when an agent cannot work, when a watchdog stopped it, or when it keeps failing in the same way. In the last
 * case the agent is also paused.
 */
import { systemCode } from "../../core/errors.ts";
import type { AttemptOutcome, Failed } from "../../core/outcome.ts";
import type { AgentSettings } from "../../core/settings.ts";
import { stateTree } from "../../core/state-tree.ts";
import { systemClock } from "../../host/system-clock.ts";
import { Alerts } from "../../journal/alerts.ts";
import { BreakerFile } from "../breaker/breaker-file.ts";
import { type BreakerDocument, pauseText, resumeText } from "../breaker/breaker-rules.ts";

/** How much of the text of a failure is shown (characters). */
const TEXT_MAX = 300;
/** Failures that a person decided on. They say nothing about the agent. */
const DECIDED: ReadonlySet<Failed["failure"]> = new Set(["cancelled", "budget"]);

export class AgentAlerts {
  private readonly told = new Set<string>();

  constructor(private readonly agent: AgentSettings) {}

  /** Called when a run has ended. */
  async note(stateDir: string, taskId: string, outcome: AttemptOutcome): Promise<void> {
    // A deferred run says nothing about the agent.
    if (outcome.kind !== "failed" && outcome.kind !== "completed") return;
    const failed = outcome.kind === "failed" ? outcome : undefined;
    if (failed !== undefined && DECIDED.has(failed.failure)) return;
    const paused = await this.count(stateDir, taskId, failed);
    if (failed === undefined) return;
    const { name } = this.agent;
    const advice = adviceOf(this.agent, failed, taskId);
    if (paused !== undefined) {
      const todo = [`see \`mailchute logs ${taskId}\``, ...(advice === undefined ? [] : [advice])];
      const open = `when it is mended: \`${resumeText(paused)}\``;
      this.raise(stateDir, "agent_paused", [pauseText(paused), ...todo, open].join("; "));
      return;
    }
    if (advice === undefined) return;
    // Silence and the time limit are different reasons.
    const reason = failed.failure === "timeout" ? failed.code : failed.failure;
    const what = failed.message.slice(0, TEXT_MAX);
    this.tellOnce(stateDir, reason, failed.failure, `agent ${name}: ${what}; ${advice}`);
  }

  /** Called when a task has failed in the same way so often that it is not tried again. */
  noteGivenUp(stateDir: string, taskId: string, { message }: Failed): void {
    const what = message.slice(0, TEXT_MAX);
    this.raise(
      stateDir,
      "same_failure",
      `task ${taskId}: ${what}; look at \`mailchute logs ${taskId}\`, change the task, then \`mailchute retry ${taskId}\``,
    );
  }

  /** @returns the pause, if this run caused it */
  private async count(
    stateDir: string,
    taskId: string,
    failed: Failed | undefined,
  ): Promise<BreakerDocument | undefined> {
    try {
      return await new BreakerFile(stateDir, this.agent.name).note(taskId, failed);
    } catch (error) {
      if (systemCode(error) === "") throw error;
      // The disk does not accept the count. The next failure is counted again.
      return undefined;
    }
  }

  /** Called when the program did not exit after its work was done. */
  noteLingering(stateDir: string, taskId: string): void {
    const { name, program = this.agent.kind } = this.agent;
    this.tellOnce(
      stateDir,
      "lingering",
      "lingering",
      `agent ${name}: it ended the work on ${taskId} and did not exit, so it was stopped; the work counts. Update ${program}, or look for what keeps it: \`mailchute logs ${taskId}\``,
    );
  }

  /** Called when the meter has not seen all that a run used. */
  noteUnmetered(stateDir: string, taskId: string, why: string): void {
    const todo = `see \`requests.jsonl\` of the run of ${taskId}, and docs/agents.md#the-meter`;
    this.tellOnce(stateDir, why, "unmetered", `agent ${this.agent.name}: ${why}; ${todo}`);
  }

  /** Raises an alert once for each agent and reason. */
  private tellOnce(stateDir: string, reason: string, kind: string, message: string): void {
    if (this.told.has(reason)) return;
    this.told.add(reason);
    this.raise(stateDir, `agent_${kind}`, message);
  }

  private raise(stateDir: string, kind: string, message: string): void {
    const alerts = new Alerts(stateTree(stateDir).alerts, systemClock, () => {});
    alerts.raise(kind, message);
    alerts.close();
  }
}

/** What a person should do. Undefined for a failure that says nothing about the next run. */
function adviceOf(
  { name, kind, account = "default" }: AgentSettings,
  { failure, code }: Failed,
  taskId: string,
): string | undefined {
  const again = `then \`mailchute retry ${taskId}\``;
  switch (failure) {
    case "auth":
      return `log in again with ${kind} (account ${account}), ${again}`;
    case "config":
      return `mend the settings of ${name} in config.yaml, or what its account pays for, ${again}`;
    case "permission":
      return `allow it in permissions of ${name} in config.yaml, or ask for less, ${again}`;
    case "timeout":
      return code === "ErrIdle"
        ? `see \`mailchute logs ${taskId}\` for what it waited for; if it needs longer, raise idle_ms of ${name} in config.yaml`
        : `make the task smaller, or raise timeout_ms of the task or of ${name}`;
    default:
      return undefined;
  }
}
