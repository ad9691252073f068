/** Gives the best tasks that may start to the workers. */
import { NEVER, type Service, type Tick } from "../environment/service.ts";
import type { Dispatcher } from "./dispatcher.ts";
import type { StartLimits } from "./start-limits.ts";

export class Starter implements Service {
  private hasMore = false;

  constructor(
    private readonly limits: StartLimits,
    private readonly dispatcher: Dispatcher,
  ) {}

  work({ nowMs }: Tick): void {
    const which = this.limits.whichMayStart(nowMs);
    this.hasMore = which !== undefined && this.dispatcher.select(this.limits.left, which);
  }

  nextMs(nowMs: number): number {
    return this.hasMore ? nowMs : NEVER;
  }
}
