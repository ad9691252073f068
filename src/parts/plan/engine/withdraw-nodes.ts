/** Removes the tasks of nodes from the mailbox when a person cancels them, or when the plan does not want them any more. */
import { messageOf } from "../../../core/errors.ts";
import { foldId } from "../../../core/names.ts";
import { cancellingSequence } from "../../../host/identity.ts";
import { claimReady } from "../../../mailbox/claim/claim.ts";
import { requeue } from "../../../mailbox/claim/requeue.ts";
import { findClaim } from "../../../mailbox/find/locate.ts";
import type { PartHost } from "../../../supervisor/part.ts";
import type { PlanEngine } from "./engine.ts";

export class NodeWithdrawals {
  private readonly newOwner = cancellingSequence();
  private readonly underWay = new Set<string>();

  constructor(
    private readonly host: Pick<PartHost, "env" | "queue">,
    private readonly engine: PlanEngine,
  ) {}

  /** Removes the tasks that the plan does not want. Each `survey` of the engine finds the remaining ones again. */
  work(): void {
    for (const id of this.engine.takeUnwanted()) {
      if (this.underWay.has(id) || this.isOffered(id)) continue;
      this.underWay.add(id);
      this.takeBack(id, false)
        .catch((error: unknown) => this.host.env.alerts.report(`take-back:${id}`, messageOf(error)))
        .finally(() => this.underWay.delete(id));
    }
  }

  /** See `TaskSource.takeBack`. A node in progress is open afterwards. */
  async takeBack(id: string, isAgain: boolean): Promise<boolean> {
    const { engine } = this;
    const { trays } = this.host.env;
    if (!engine.isNode(id) || engine.isForeignLive(id)) return false;
    const live = findClaim(trays, id);
    if (live?.name.stage === "w") return false;
    engine.noteBegun(id);
    if (live !== undefined) {
      const claim = claimReady(trays, live.name, this.newOwner());
      if (claim === undefined) return false;
      requeue(trays, claim);
    }
    const isOut = await this.withdraw(id);
    return isOut || (isAgain && engine.isOpen(id));
  }

  /** See `TaskSource.withdraw`. The node is open afterwards. */
  async withdraw(id: string): Promise<boolean> {
    const { env, queue } = this.host;
    queue.backlog.remove(id);
    queue.dispatcher.inFlight.delete(foldId(id));
    const isOut = await this.engine.withdraw(id);
    env.facts.emit("inbox:written", `${id}.json`);
    env.facts.emit("processing:changed");
    return isOut;
  }

  /** A task that was offered to a worker counts as running. */
  private isOffered(id: string): boolean {
    const { backlog, dispatcher } = this.host.queue;
    return dispatcher.inFlight.has(foldId(id)) && backlog.stateOfId(id) === undefined;
  }
}
