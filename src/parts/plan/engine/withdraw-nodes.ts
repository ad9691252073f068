/** Removes the tasks of nodes from the mailbox when a person cancels them, or when the plan does not want them any more. */
import { messageOf } from "../../../core/errors.ts";
import { isContainer, isNodeTask } from "../../../core/roadmap.ts";
import { cancellingSequence } from "../../../host/identity.ts";
import { claimReady } from "../../../mailbox/claim/claim.ts";
import { requeue } from "../../../mailbox/claim/requeue.ts";
import { findClaim } from "../../../mailbox/find/locate.ts";
import { withdraw } from "../../../mailbox/submit/withdraw.ts";
import type { PartHost } from "../../../supervisor/part.ts";
import type { EngineParts } from "./engine-parts.ts";
import type { NodeLauncher } from "./launch-nodes.ts";

export class NodeWithdrawals {
  private readonly newOwner = cancellingSequence();
  private readonly underWay = new Set<string>();

  constructor(
    private readonly deps: Pick<EngineParts, "env" | "store" | "active">,
    private readonly queue: PartHost["queue"],
    private readonly launcher: NodeLauncher,
  ) {}

  /** Removes the tasks that the plan does not want. */
  work(unwanted: Iterable<string>): void {
    for (const id of unwanted) {
      if (this.underWay.has(id) || this.isOffered(id)) continue;
      this.underWay.add(id);
      this.takeBack(id, false)
        .catch((error: unknown) => this.deps.env.alerts.report(`take-back:${id}`, messageOf(error)))
        .finally(() => this.underWay.delete(id));
    }
  }

  /** See `TaskSource`. */
  isOwn(id: string): boolean {
    const node = this.deps.store.find(id);
    return node !== undefined && !isContainer(node);
  }

  /** See `TaskSource`. A node in progress is open afterwards. */
  async takeBack(id: string, isAgain: boolean): Promise<boolean> {
    const { trays } = this.deps.env;
    if (!this.isOwn(id) || this.launcher.liveTask(id) === "foreign") return false;
    const live = findClaim(trays, id);
    if (live?.name.stage === "w") return false;
    this.deps.active.noteBegun(id);
    if (live !== undefined) {
      const claim = claimReady(trays, live.name, this.newOwner());
      if (claim === undefined) return false;
      requeue(trays, claim);
    }
    const isOut = await this.withdraw(id);
    return isOut || (isAgain && this.deps.store.find(id)?.status === "open");
  }

  /** See `TaskSource`. The node is open afterwards. */
  async withdraw(id: string): Promise<boolean> {
    const { env, store, active } = this.deps;
    this.queue.backlog.remove(id);
    this.queue.accepted.delete(id);
    let isOut = false;
    if (this.isOwn(id)) {
      if (store.find(id)?.status === "in_progress") store.setStatus(id, "open");
      await store.flushed();
      isOut = withdraw(env.trays, id, (bytes) => isTaskOfNode(bytes, id));
      if (isOut) active.leave(id);
    }
    env.facts.emit("inbox:written", `${id}.json`);
    env.facts.emit("processing:changed");
    return isOut;
  }

  /** A task that was offered to a worker counts as running. */
  private isOffered(id: string): boolean {
    const { accepted, backlog } = this.queue;
    return accepted.has(id) && backlog.stateOfId(id) === undefined;
  }
}

function isTaskOfNode(bytes: Buffer, id: string): boolean {
  try {
    return isNodeTask(JSON.parse(bytes.toString("utf8")), id);
  } catch {
    return false;
  }
}
