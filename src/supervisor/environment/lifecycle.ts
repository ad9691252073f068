/** How far a supervisor is: it runs until it is asked to end, or has a reason of its own. */
import type { SupervisorDocument } from "../../core/documents.ts";

export type EndReason = "drained" | "once" | "limit" | "stop" | "lock-lost";

export class Lifecycle {
  status: SupervisorDocument["status"] = "running";
  endedBy: EndReason | undefined;
  /** Resolves when it is to shut down. */
  readonly ended: Promise<EndReason>;
  private tellEnded: (reason: EndReason) => void = () => {};

  constructor() {
    this.ended = new Promise((resolve) => {
      this.tellEnded = resolve;
    });
  }

  /** @param drain what runs may end first. @returns true when it was draining already, and is to hurry now */
  ask(drain: boolean): boolean {
    const isHurried = this.status === "draining" && !drain;
    this.status = drain ? "draining" : "stopping";
    this.end("stop");
    return isHurried;
  }

  /** The first reason counts. */
  end(reason: EndReason): void {
    if (this.endedBy !== undefined) return;
    this.endedBy = reason;
    this.tellEnded(reason);
  }
}
