/**
 * Keeps tasks of paused agents from starting: those in the inbox are not accepted, those that a worker put back stay held. Workers
 * pause an agent whose runs fail again and again; the pauses are files, which a person can see and remove.
 */
import { pausedAgents, pausedHold } from "../../agents/breaker/breaker-file.ts";
import { type BreakerDocument, pauseText, resumeText } from "../../agents/breaker/breaker-rules.ts";
import type { ClosedGate } from "../../core/documents.ts";
import { messageOf } from "../../core/errors.ts";
import { closedGate } from "../../core/gates.ts";
import { isFunction } from "../../core/settings.ts";
import type { Part, StartLimit, StatusSource } from "../../supervisor/environment/part.ts";
import { NEVER, type Tick } from "../../supervisor/environment/service.ts";
import type { MakePart, PartHost } from "../../supervisor/part.ts";

/** How often the files are read (ms). */
const LOOK_MS = 500;

class BreakerPart implements Part, StartLimit, StatusSource {
  readonly ports = { startLimit: this, status: this };
  version = 0;
  gates: readonly ClosedGate[] = [];
  private readonly env: PartHost["env"];
  /** Only runs of coding agents are counted. */
  private readonly isNeeded: boolean;
  private paused: ReadonlyMap<string, BreakerDocument> = new Map();
  private lookAtMs = 0;

  constructor({ env }: Pick<PartHost, "env">) {
    this.env = env;
    this.isNeeded = env.settings.agents.some(
      (agent) => agent.kind !== "exec" && !isFunction(agent),
    );
  }

  async start(): Promise<void> {
    if (this.isNeeded) this.look();
  }

  work({ nowMs }: Tick): void {
    if (!this.isNeeded || nowMs < this.lookAtMs) return;
    this.lookAtMs = nowMs + LOOK_MS;
    this.look();
  }

  nextMs(): number {
    return this.paused.size > 0 ? this.lookAtMs : NEVER;
  }

  private look(): void {
    const { alerts, tree } = this.env;
    try {
      const paused = new Map(pausedAgents(tree.dir).map((one) => [one.agent, one]));
      const before = this.paused;
      const news = [...paused.values()].filter(
        (one) => before.get(one.agent)?.paused_at !== one.paused_at,
      );
      if (news.length === 0 && paused.size === before.size) return;
      this.paused = paused;
      this.gates = [...paused.values()].map(gateOf);
      this.version++;
      for (const { why, do: todo } of news.map(gateOf)) alerts.notice(`${why}; ${todo}`);
    } catch (error) {
      alerts.report("breakers", `cannot read breakers/: ${messageOf(error)}`);
    }
  }
}

function gateOf(paused: BreakerDocument): ClosedGate {
  const { agent } = paused;
  const todo = `mend that, see mailchute logs ${paused.task_id}; then ${resumeText(paused)}`;
  return closedGate(pausedHold(agent), pauseText(paused), todo, { agents: [agent] });
}

export const breaker: MakePart = (host) => new BreakerPart(host);
