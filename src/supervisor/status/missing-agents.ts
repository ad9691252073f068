/** Tells people of tasks and nodes that no agent fits: of each once, for as long as it waits. */
import type { Backlog } from "../../core/backlog.ts";
import type { Alerts } from "../../journal/alerts.ts";
import type { PlanEngine } from "../../parts/plan/engine/engine.ts";

/** So many tasks, and nodes, are looked at each time. */
const LOOKED_AT_MAX = 100;

export class MissingAgents {
  private readonly backlog: Backlog;
  private readonly plan: PlanEngine;
  private readonly alerts: Alerts;
  /** What was told already, of what waits still. */
  private told = new Set<string>();

  constructor(backlog: Backlog, plan: PlanEngine, alerts: Alerts) {
    this.backlog = backlog;
    this.plan = plan;
    this.alerts = alerts;
  }

  tell(): void {
    const found = new Set<string>();
    for (const { id, reason } of this.backlog.waitingAs("unmatched")) {
      if (found.size === LOOKED_AT_MAX) break;
      found.add(`task ${id} cannot run: ${reason ?? "no agent fits"}`);
    }
    for (const { node, reason } of this.plan.unmatched(LOOKED_AT_MAX))
      found.add(`node ${node.id} cannot run: ${reason}`);
    for (const message of found)
      if (!this.told.has(message)) this.alerts.alert("no_agent", message);
    this.told = found;
  }
}
