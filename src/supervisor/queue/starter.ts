/** Starts what may start: nodes of the plan become tasks, and the best tasks go to the workers. */

import type { PlanEngine } from "../../parts/plan/engine/engine.ts";
import type { Service, Tick } from "../environment/service.ts";
import { NEVER } from "../environment/service.ts";
import type { Dispatcher } from "./dispatcher.ts";
import type { StartLimits } from "./start-limits.ts";

export class Starter implements Service {
  private readonly limits: StartLimits;
  private readonly plan: PlanEngine;
  private readonly dispatcher: Dispatcher;
  private hasMore = false;

  constructor(limits: StartLimits, plan: PlanEngine, dispatcher: Dispatcher) {
    this.limits = limits;
    this.plan = plan;
    this.dispatcher = dispatcher;
  }

  work({ nowMs }: Tick): void {
    const { limits, plan, dispatcher } = this;
    plan.work(limits.allowance(nowMs));
    const which = limits.whichMayStart(nowMs);
    this.hasMore = which !== undefined && dispatcher.select(limits.left, which);
  }

  nextMs(nowMs: number): number {
    return this.hasMore ? nowMs : Math.min(NEVER, this.plan.nextMs());
  }
}
