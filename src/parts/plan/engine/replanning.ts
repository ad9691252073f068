/**
 * The command `replan`: until the planner node has ended, only planners start. While the planner waits for other nodes, those may
 * start, too.
 */
import { ErrInvalidTransition } from "../../../core/errors.ts";
import type { RoadmapNode } from "../../../core/roadmap.ts";
import type { CommandHandler } from "../../../supervisor/control/command-context.ts";
import { steer } from "../../../supervisor/control/steer.ts";
import type { StartLimit } from "../../../supervisor/environment/part.ts";
import type { PartHost } from "../../../supervisor/part.ts";
import type { PlanEngine } from "./engine.ts";
import type { EngineParts } from "./engine-parts.ts";

/** The planner node that is opened again. */
const PLANNER_ID = "plan-000";

export class Replanning implements StartLimit {
  constructor(
    private readonly deps: Pick<EngineParts, "env" | "store" | "active">,
    private readonly control: PartHost["control"],
    private readonly engine: PlanEngine,
  ) {}

  replan(): readonly string[] | undefined {
    return this.isOn() ? this.deps.active.listUnbegun() : undefined;
  }

  isOn(): boolean {
    const { control, engine } = this;
    if (!control.current.replan_paused || !engine.isStarted) return control.current.replan_paused;
    const planner = this.planner();
    // While an open planner cannot start, the nodes that it waits for must be allowed to start.
    if (planner?.status === "open")
      return engine.launcher.launchable().some(({ id }) => id === planner.id);
    if (planner?.status === "in_progress") return true;
    control.change({ replan_paused: false });
    this.deps.env.telemetry.note("replan_finished");
    return false;
  }

  readonly command: CommandHandler = async (context, inHand) => {
    const { control, parts } = context;
    await parts.started;
    if (!control.isApplied(inHand.nonce)) await this.openPlanner(inHand.command.id);
    steer(context, inHand, "replan_started", () =>
      control.current.replan_paused ? undefined : { replan_paused: true },
    );
    return { replanPaused: true };
  };

  private async openPlanner(commandId: string): Promise<void> {
    const planner = this.planner();
    if (planner === undefined)
      throw new ErrInvalidTransition("there is no node plan-000 to replan", {
        id: commandId,
        hint: "replan needs a roadmap with a planner node plan-000",
      });
    if (planner.status === "open" || planner.status === "in_progress") return;
    this.deps.store.setStatus(planner.id, "open");
    await this.deps.store.flushed();
  }

  /** `plan-000`, or else the first plan without a parent. */
  private planner(): RoadmapNode | undefined {
    const { store } = this.deps;
    return (
      store.find(PLANNER_ID) ??
      store.nodes.find((node) => node.type === "plan" && node.parent === undefined)
    );
  }
}
