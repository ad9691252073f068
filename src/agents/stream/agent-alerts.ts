/** Tells a person what to do when an agent cannot work: once for each agent and reason. */
import type { AttemptOutcome } from "../../core/outcome.ts";
import type { AgentSettings } from "../../core/settings.ts";
import { stateTree } from "../../core/state-tree.ts";
import type { FailureKind } from "../../core/task.ts";
import { systemClock } from "../../host/system-clock.ts";
import { Alerts } from "../../journal/alerts.ts";

export class AgentAlerts {
  private readonly agent: AgentSettings;
  private readonly told = new Set<string>();

  constructor(agent: AgentSettings) {
    this.agent = agent;
  }

  /** Does nothing for a failure that says nothing about the next run. */
  note(stateDir: string, taskId: string, outcome: AttemptOutcome): void {
    if (outcome.kind !== "failed") return;
    const advice = adviceOf(this.agent, outcome.failure);
    if (advice === undefined || this.told.has(outcome.failure)) return;
    this.told.add(outcome.failure);
    const { name } = this.agent;
    const alerts = new Alerts(stateTree(stateDir).alerts, systemClock, () => {});
    alerts.raise(
      `agent_${outcome.failure}`,
      `agent ${name}: ${outcome.message}; ${advice}, then \`mailchute retry ${taskId}\``,
    );
    alerts.close();
  }
}

function adviceOf(
  { name, kind, account = "default" }: AgentSettings,
  failure: FailureKind,
): string | undefined {
  switch (failure) {
    case "auth":
      return `log in again with ${kind} (account ${account})`;
    case "config":
      return `mend the settings of ${name} in config.yaml, or what its account pays for`;
    case "permission":
      return `allow it in permissions of ${name} in config.yaml, or ask for less`;
    default:
      return undefined;
  }
}
