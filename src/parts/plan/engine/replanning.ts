/**
 * The command `replan`: until the planner node has ended, only planners start. While the planner waits for other nodes, those may
 * start, too.
 */
import { ErrInvalidTransition } from "../../../core/errors.ts";
import type { CommandHandler } from "../../../supervisor/control/command-context.ts";
import { steer } from "../../../supervisor/control/steer.ts";
import type { Choice, StartLimit } from "../../../supervisor/environment/part.ts";
import type { PartHost } from "../../../supervisor/part.ts";
import type { PlanEngine } from "./engine.ts";

export class Replanning implements StartLimit {
  constructor(
    private readonly host: Pick<PartHost, "env" | "control">,
    private readonly engine: PlanEngine,
  ) {}

  choice(): Choice | undefined {
    return this.isOn() ? { kind: "planners", ids: this.engine.unbegun() } : undefined;
  }

  isOn(): boolean {
    const { control, env } = this.host;
    const { engine } = this;
    if (!control.current.replan_paused || !engine.isStarted) return control.current.replan_paused;
    if (engine.isPlanning()) return !engine.isPlannerWaiting();
    control.change({ replan_paused: false });
    env.telemetry.note("replan_finished");
    return false;
  }

  readonly command: CommandHandler = async (context, inHand) => {
    const { control, parts } = context;
    await parts.started;
    if (!control.isApplied(inHand.nonce) && !(await this.engine.reopenPlanner()))
      throw new ErrInvalidTransition("there is no node plan-000 to replan", {
        id: inHand.command.id,
        hint: "replan needs a roadmap with a planner node plan-000",
      });
    steer(context, inHand, "replan_started", () =>
      control.current.replan_paused ? undefined : { replan_paused: true },
    );
    return { replanPaused: true };
  };
}
