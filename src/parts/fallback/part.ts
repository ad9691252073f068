/** Notes which agent runs a task that several agents may run: see `agents/chosen-agent`. */
import { attachedIn } from "../../agents/attached.ts";
import { chosenAgent, giveToAgent } from "../../agents/chosen-agent.ts";
import { messageOf } from "../../core/errors.ts";
import { ATTACHED_GATE } from "../../core/gates.ts";
import type { Lane } from "../../core/waiting-task.ts";
import type { Part, StartLimit } from "../../supervisor/environment/part.ts";
import type { MakePart, PartHost } from "../../supervisor/part.ts";

class FallbackPart implements Part, StartLimit {
  readonly ports = { startLimit: this };

  constructor(private readonly env: PartHost["env"]) {}

  /** A task goes on with the agent in whose session a person was. */
  private agentOfPerson(id: string, gate: string | undefined): string | undefined {
    const { tree } = this.env;
    const { session } = attachedIn(tree.dir).read(id) ?? {};
    const isHeld = gate?.startsWith(ATTACHED_GATE) === true;
    return session?.agent ?? (isHeld ? chosenAgent(tree.sessions, id) : undefined);
  }

  noteStart({ agent, fallbacks, gate, hasPlaces }: Lane, id: string): boolean {
    if (fallbacks.length === 0) return false;
    const { alerts, tree } = this.env;
    try {
      const ofPerson = this.agentOfPerson(id, gate);
      const isFirst = gate === undefined && !hasPlaces && ofPerson === undefined;
      giveToAgent(tree.sessions, id, ofPerson ?? agent, isFirst);
    } catch (error) {
      // The agent that had it last runs it. If that one is closed, the task comes back.
      alerts.report("agents", `cannot note the agent of ${id}: ${messageOf(error)}`);
    }
    return true;
  }
}

export const fallback: MakePart = ({ env }) => new FallbackPart(env);
