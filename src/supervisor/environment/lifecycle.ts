/** How far a supervisor is: it runs until it is asked to end, or has a reason of its own. */

export type EndReason = "drained" | "once" | "limit" | "stop" | "lock-lost";

/** `draining`: what runs may end first; `stopping`: it is given back. The first reason counts. */
export type RunState =
  | { readonly is: "running" }
  | { readonly is: "draining" | "stopping"; readonly reason: EndReason };

export class Lifecycle {
  private current: RunState = { is: "running" };
  /** Resolves when it is to shut down. */
  readonly ended: Promise<EndReason>;
  private tellEnded: (reason: EndReason) => void = () => {};
  private readonly onHurry: () => void;

  /** @param onHurry it drains already, and is to give back what runs now */
  constructor(onHurry: () => void) {
    this.onHurry = onHurry;
    this.ended = new Promise((resolve) => {
      this.tellEnded = resolve;
    });
  }

  get state(): RunState {
    return this.current;
  }

  get isEnding(): boolean {
    return this.current.is !== "running";
  }

  /** Asks it to end: after what runs has ended (`drain`), or after giving it back. A stop is not taken back. */
  ask(drain: boolean): void {
    const was = this.current.is;
    this.move(drain && was !== "stopping" ? "draining" : "stopping", "stop");
    if (was === "draining" && !drain) this.onHurry();
  }

  /** It has a reason of its own to end. */
  end(reason: EndReason): void {
    if (!this.isEnding) this.move("draining", reason);
  }

  private move(is: "draining" | "stopping", reason: EndReason): void {
    const { current } = this;
    this.current = { is, reason: current.is === "running" ? reason : current.reason };
    this.tellEnded(this.current.reason);
  }
}
