/** The state of a supervisor: it runs until it is asked to end, or ends for its own reason. */

export type EndReason = "drained" | "once" | "limit" | "stop" | "lock-lost";

/** `draining`: running tasks may end first; `stopping`: they are given back. The first reason counts. */
export type RunState =
  | { readonly is: "running" }
  | { readonly is: "draining" | "stopping"; readonly reason: EndReason };

export class Lifecycle {
  private current: RunState = { is: "running" };
  /** Resolves when the supervisor has to shut down. */
  readonly ended: Promise<EndReason>;
  /** See `finishWork`. */
  finishingUntilMs: number | undefined;
  private tellEnded: (reason: EndReason) => void = () => {};

  /** @param onHurry called when it drains already, and now has to give back running tasks */
  constructor(private readonly onHurry: () => void) {
    this.ended = new Promise((resolve) => {
      this.tellEnded = resolve;
    });
  }

  get state(): RunState {
    return this.current;
  }

  /** The state as people read it. */
  get status(): RunState["is"] {
    return this.finishingUntilMs !== undefined && !this.isEnding ? "draining" : this.current.is;
  }

  get isEnding(): boolean {
    return this.current.is !== "running";
  }

  /** Asks it to end: after running tasks have ended (`drain`), or after giving them back. A stop cannot be undone. */
  ask(drain: boolean): void {
    const was = this.current.is;
    this.move(drain && was !== "stopping" ? "draining" : "stopping", "stop");
    if (was === "draining" && !drain) this.onHurry();
  }

  /**
   * From now on only what finishes other work starts: landings, reviews, fixes. `ExitCondition` then ends the run.
   * @param untilMs monotonic: nothing at all starts after it
   */
  finishWork(untilMs: number): void {
    this.finishingUntilMs ??= untilMs;
  }

  /** Ends the run for a reason of its own. */
  end(reason: EndReason): void {
    if (!this.isEnding) this.move("draining", reason);
  }

  private move(is: "draining" | "stopping", reason: EndReason): void {
    const { current } = this;
    this.current = { is, reason: current.is === "running" ? reason : current.reason };
    this.tellEnded(this.current.reason);
  }
}
