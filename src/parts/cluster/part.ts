/** Keeps what runs at other machines where it is. Without a remote agent in the settings it does nothing. */
import { readLane } from "../../core/waiting-task.ts";
import type { Part, StartLimit } from "../../supervisor/environment/part.ts";
import { NEVER } from "../../supervisor/environment/service.ts";
import type { MakePart, PartHost } from "../../supervisor/part.ts";
import { clusterGate, targetOf } from "./protocol/dispatch.ts";

class ClusterPart implements Part, StartLimit {
  readonly ports = { startLimit: this };
  /** The gate of each remote agent. A task of another gate is let go: its agent is another one by now. */
  private readonly gates = new Map<string, string>();

  constructor({ env }: Pick<PartHost, "env">) {
    for (const agent of env.settings.agents)
      if (agent.kind === "remote") this.gates.set(agent.name, clusterGate(targetOf(agent)));
  }

  mayStart(lane: string): boolean {
    if (this.gates.size === 0) return true;
    const { agent, gate } = readLane(lane);
    return gate === undefined || this.gates.get(agent) !== gate;
  }

  async start(): Promise<void> {}

  work(): void {}

  nextMs(): number {
    return NEVER;
  }

  async finish(): Promise<void> {}

  close(): void {}
}

export const cluster: MakePart = (host) => new ClusterPart(host);
