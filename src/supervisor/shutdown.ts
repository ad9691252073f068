/** Ends a run, step by step: nothing new begins, running tasks end or are given back, and the last status is written. */
import { messageOf } from "../core/errors.ts";
import type { Settings } from "../core/settings.ts";
import type { CommandInbox } from "./control/command-inbox.ts";
import type { Environment } from "./environment/environment.ts";
import type { EndReason, Lifecycle } from "./environment/lifecycle.ts";
import type { Parts } from "./environment/parts.ts";
import type { Service } from "./environment/service.ts";
import type { Poll } from "./poll.ts";
import type { Pool } from "./pool/pool.ts";
import type { StatusWriter } from "./status/status-writer.ts";

/** How long parts may handle the last results (ms); the rest is done at the next start. */
const PARTS_FINISH_MS = 3000;
/** How often commands are looked at while the workers end (ms). */
const COMMANDS_LOOK_MS = 200;

export interface ShutdownParts {
  pool: Pool;
  poll: Poll;
  parts: Parts;
  commands: CommandInbox;
  /** Services that may still be moving files. */
  movers: readonly { idle(): Promise<void> }[];
  status: StatusWriter;
}

/** How long workers may take to give back their tasks and end (ms). */
export function stopLimitMs({ grace_ms: graceMs }: Settings): number {
  return graceMs * 2 + 2000;
}

export class Shutdown {
  private readonly deps: ShutdownParts;

  constructor(
    private readonly env: Environment,
    private readonly lifecycle: Lifecycle,
    parts: ShutdownParts,
  ) {
    this.deps = parts;
  }

  /** @param services the services of the tick, which is not called any more */
  async run(endedBy: EndReason, services: readonly Service[]): Promise<void> {
    const { telemetry, alerts } = this.env;
    const { commands, parts, poll, pool, status } = this.deps;
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
    const { commands, parts, poll, movers, status } = this.deps;
    status.tell();
    const endBeats = status.beatByTimer();
    try {
      await this.closePool();
      await poll.finish();
      await parts.finish(PARTS_FINISH_MS);
      for (const mover of movers) await mover.idle();
    } finally {
      endBeats();
    }
    // Take the last look now: no event comes any more. A stop that is meant for us must not be left for the next supervisor.
    commands.lastLook();
  }

  /** Closes the pool. Running tasks may take long to end, so commands are still taken, above all those that end tasks. */
  private async closePool(): Promise<void> {
    const look = setInterval(() => {
      try {
        this.deps.commands.work();
      } catch (error) {
        this.env.alerts.report("tick", `unexpected: ${messageOf(error)}`);
      }
    }, COMMANDS_LOOK_MS);
    const mayEnd = this.lifecycle.state.is !== "stopping";
    await this.deps.pool.close(mayEnd, stopLimitMs(this.env.settings));
    clearInterval(look);
  }
}
