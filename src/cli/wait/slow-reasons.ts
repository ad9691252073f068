/** Reports on stderr why a command waits for a long time: no supervisor runs, or nothing new starts. */
import { explainShortage } from "../../core/free-space.ts";
import type { StateTree } from "../../core/state-tree.ts";
import { safe } from "../../text/render.ts";
import { intakeStopped, isAttended, readSupervisor } from "../../view/supervisor.ts";
import type { Context } from "../shell/command-spec.ts";

const LOOK_MS = 1000;

export class WaitWatch {
  private lookAtMs = 0;
  private isFirst = true;
  private isStopped = false;

  constructor(
    private readonly ctx: Pick<Context, "out">,
    private readonly tree: StateTree,
  ) {}

  /** Reports each reason once, when it begins. */
  tell(): void {
    if (performance.now() < this.lookAtMs) return;
    this.lookAtMs = performance.now() + LOOK_MS;
    const supervisor = readSupervisor(this.tree, Date.now());
    if (this.isFirst && !isAttended(supervisor))
      this.ctx.out.note("no supervisor runs on this state tree; waiting for one (mailchute run)");
    this.isFirst = false;
    const stopped = intakeStopped(supervisor);
    if (stopped !== undefined && !this.isStopped) this.ctx.out.note(safe(explainShortage(stopped)));
    this.isStopped = stopped !== undefined;
  }
}
