/** The end of a run, step by step: nothing new begins, what runs ends or is given back, and the last words are written. */
import { messageOf } from "../core/errors.ts";
import type { Settings } from "../core/settings.ts";
import type { CommandInbox } from "./control/command-inbox.ts";
import type { Environment } from "./environment/environment.ts";
import type { EndReason, Lifecycle } from "./environment/lifecycle.ts";
import type { Parts } from "./environment/parts.ts";
import type { Service } from "./environment/service.ts";
import type { Rejections } from "./inbox/reject.ts";
import type { Poll } from "./poll.ts";
import type { Pool } from "./pool/pool.ts";
import type { StatusWriter } from "./status/status-writer.ts";

/** Time for parts to do what follows from the last results (ms); what is left is done at the next start. */
const PARTS_FINISH_MS = 3000;
/** How often commands are looked at while the workers end (ms). */
const COMMANDS_LOOK_MS = 200;

export interface ShutdownParts {
  pool: Pool;
  poll: Poll;
  parts: Parts;
  commands: CommandInbox;
  rejections: Rejections;
  status: StatusWriter;
}

/** Workers that are to give back what they run have so long to go (ms). */
export function stopLimitMs({ grace_ms: graceMs }: Settings): number {
  return graceMs * 2 + 2000;
}

export class Shutdown {
  private readonly env: Environment;
  private readonly lifecycle: Lifecycle;
  private readonly p: ShutdownParts;

  constructor(env: Environment, lifecycle: Lifecycle, parts: ShutdownParts) {
    this.env = env;
    this.lifecycle = lifecycle;
    this.p = parts;
  }

  /** @param services of the tick, which does not come any more */
  async run(endedBy: EndReason, services: readonly Service[]): Promise<void> {
    const { telemetry, alerts } = this.env;
    const { commands, parts, poll, pool, status } = this.p;
    for (const service of services) service.stop?.();
    if (endedBy === "lock-lost") pool.abandon();
    else await this.bringToAnEnd();
    commands.close();
    telemetry.note("supervisor_stopped", { pid: process.pid, reason: endedBy });
    telemetry.close();
    parts.close();
    poll.close();
    await status.leave(endedBy !== "lock-lost");
    alerts.close();
  }

  private async bringToAnEnd(): Promise<void> {
    const { commands, parts, poll, rejections, status } = this.p;
    status.tell();
    await this.closePool();
    await poll.finish();
    await parts.finish(PARTS_FINISH_MS);
    await rejections.idle();
    // The last look: no event comes any more, and what is left is the next supervisor's, also a stop that is meant for us.
    commands.lastLook();
  }

  /** What runs may take its time to end: until then commands are taken, above all those that end it. */
  private async closePool(): Promise<void> {
    const look = setInterval(() => {
      try {
        this.p.commands.work();
      } catch (error) {
        this.env.alerts.report("tick", `unexpected: ${messageOf(error)}`);
      }
    }, COMMANDS_LOOK_MS);
    const mayEnd = this.lifecycle.state.is !== "stopping";
    await this.p.pool.close(mayEnd, stopLimitMs(this.env.settings));
    clearInterval(look);
  }
}
