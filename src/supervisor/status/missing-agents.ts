/** Reports tasks, and items of parts, that no agent fits. Each is reported once while it waits. */
import type { Backlog } from "../../core/backlog.ts";
import type { Alerts } from "../../journal/alerts.ts";
import type { Parts } from "../environment/parts.ts";

/** How many tasks, and items of each part, are looked at each time. */
const LOOKED_AT_MAX = 100;

export class MissingAgents {
  /** The lines reported already, of items that still wait. */
  private told = new Set<string>();

  constructor(
    private readonly backlog: Backlog,
    private readonly parts: Parts,
    private readonly alerts: Alerts,
  ) {}

  tell(): void {
    const found = new Set<string>();
    for (const { id, reason } of this.backlog.waitingAs("unmatched")) {
      if (found.size === LOOKED_AT_MAX) break;
      found.add(`task ${id} cannot run: ${reason ?? "no agent fits"}`);
    }
    for (const status of this.parts.statuses)
      for (const line of status.unmatched?.(LOOKED_AT_MAX) ?? []) found.add(line);
    for (const message of found)
      if (!this.told.has(message)) this.alerts.alert("no_agent", message);
    this.told = found;
  }
}
