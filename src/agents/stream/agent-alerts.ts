/** Tells a person what to do when an agent cannot work, was stopped by a watchdog, or fails in the same way again and again. */
import type { AttemptOutcome, Failed } from "../../core/outcome.ts";
import type { AgentSettings } from "../../core/settings.ts";
import { stateTree } from "../../core/state-tree.ts";
import { systemClock } from "../../host/system-clock.ts";
import { Alerts } from "../../journal/alerts.ts";
import { FailureStreaks } from "./failure-streaks.ts";

/** After this many equal failures in a row, a person is told. */
const SAME_MAX = { agent: 5, task: 3 } as const;
/** How much of the text of a failure is shown (characters). */
const TEXT_MAX = 300;

export class AgentAlerts {
  private readonly agent: AgentSettings;
  private readonly told = new Set<string>();
  private readonly streaks = new FailureStreaks();

  constructor(agent: AgentSettings) {
    this.agent = agent;
  }

  /** A run has ended. */
  note(stateDir: string, taskId: string, outcome: AttemptOutcome): void {
    // A run that was put off says nothing about the agent.
    if (outcome.kind !== "failed" && outcome.kind !== "completed") return;
    const failed = outcome.kind === "failed" ? outcome : undefined;
    const failure = failed === undefined ? undefined : `${failed.failure} ${failed.code}`;
    const ofAgent = this.streaks.note("agent", failure);
    const ofTask = this.streaks.note(`task ${taskId}`, failure);
    if (failed === undefined) return;
    const { name } = this.agent;
    const what = failed.message.slice(0, TEXT_MAX);
    const advice = adviceOf(this.agent, failed, taskId);
    // Silence and the time limit are different reasons.
    const reason = failed.failure === "timeout" ? failed.code : failed.failure;
    if (advice !== undefined)
      this.tellOnce(stateDir, reason, failed.failure, `agent ${name}: ${what}; ${advice}`);
    if (ofAgent === SAME_MAX.agent)
      this.raise(
        stateDir,
        "same_failure",
        `agent ${name}: ${ofAgent} runs in a row failed in the same way: ${what}; look at \`mailchute logs ${taskId}\`, and pause the pool until it is mended: \`mailchute pause\``,
      );
    if (ofTask === SAME_MAX.task)
      this.raise(
        stateDir,
        "same_failure",
        `task ${taskId}: ${ofTask} runs in a row failed in the same way: ${what}; look at \`mailchute logs ${taskId}\`, then change the task, or end it: \`mailchute cancel ${taskId}\``,
      );
  }

  /** Its work was done, and it did not exit. */
  noteLingering(stateDir: string, taskId: string): void {
    const { name, program = this.agent.kind } = this.agent;
    this.tellOnce(
      stateDir,
      "lingering",
      "lingering",
      `agent ${name}: it ended the work on ${taskId} and did not exit, so it was stopped; the work counts. Update ${program}, or look for what keeps it: \`mailchute logs ${taskId}\``,
    );
  }

  /** Once for each agent and reason. */
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

/** Undefined for a failure that says nothing about the next run. */
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
