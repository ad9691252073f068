/** Takes the tasks of nodes out of the mailbox that the plan does not want to run any more. */
import type { Backlog } from "../../../core/backlog.ts";
import { messageOf } from "../../../core/errors.ts";
import { foldId } from "../../../core/names.ts";
import type { Alerts } from "../../../journal/alerts.ts";
import { NEVER, type Service } from "../../../supervisor/environment/service.ts";
import type { Dispatcher } from "../../../supervisor/queue/dispatcher.ts";

interface UnwantedNodes {
  /** Nodes whose tasks are to go. Told again while they are there. */
  takeUnwanted(): string[];
}

export class NodeWithdrawals implements Service {
  private readonly plan: UnwantedNodes;
  private readonly backlog: Backlog;
  private readonly dispatcher: Dispatcher;
  private readonly alerts: Alerts;
  private readonly takeBack: (id: string) => Promise<unknown>;
  private readonly underWay = new Set<string>();

  constructor(
    plan: UnwantedNodes,
    backlog: Backlog,
    dispatcher: Dispatcher,
    alerts: Alerts,
    takeBack: (id: string) => Promise<unknown>,
  ) {
    this.plan = plan;
    this.backlog = backlog;
    this.dispatcher = dispatcher;
    this.alerts = alerts;
    this.takeBack = takeBack;
  }

  work(): void {
    for (const id of this.plan.takeUnwanted()) {
      if (this.underWay.has(id) || this.isOffered(id)) continue;
      this.underWay.add(id);
      this.takeBack(id)
        .catch((error: unknown) => this.alerts.report(`take-back:${id}`, messageOf(error)))
        .finally(() => this.underWay.delete(id));
    }
  }

  nextMs(): number {
    return NEVER;
  }

  /** What was offered to a worker counts as running. At the start nothing was, and nothing is known yet. */
  private isOffered(id: string): boolean {
    return this.dispatcher.inFlight.has(foldId(id)) && this.backlog.stateOfId(id) === undefined;
  }
}
