/** Tells people why tasks of a target wait. Pure. */
import type { ClosedGate } from "../../core/documents.ts";
import { closedGate } from "../../core/gates.ts";
import { clusterGate } from "./protocol/dispatch.ts";
import type { BridgeDocument } from "./tree/bridge-document.ts";

interface TargetState {
  name: string;
  agents: readonly string[];
  /** The groups whose tasks are sent there, whatever their agents are. */
  groups: readonly string[];
  /** Tasks that wait for their results. */
  sent: number;
  /** True if as many tasks are on their way as are allowed. */
  isFull: boolean;
  /** Undefined when no bridge runs. */
  bridge: BridgeDocument | undefined;
}

/** A gate for the agents of the target, and one for each of its groups whose tasks wait. Empty when it is open and nothing waits. */
export function gatesOf(state: TargetState): ClosedGate[] {
  const gate = gateOf(state);
  if (gate === undefined) return [];
  // Tasks of the target are in work, and more may start.
  if (gate.is_well === true && !state.isFull) return [gate];
  // Only the first gate tells what is wrong and the reasons of single tasks.
  const more = { agents: [], tasks: {}, is_well: true };
  return [gate, ...state.groups.map((group) => ({ ...gate, ...more, group }))];
}

function gateOf({ name, agents, sent, isFull, bridge }: TargetState): ClosedGate | undefined {
  const gate = (why: string, todo: string, more: Partial<ClosedGate> = {}): ClosedGate =>
    closedGate(clusterGate(name), why, todo, { agents: [...agents], ...more });
  if (bridge === undefined)
    return gate(
      `no bridge runs here, so tasks for ${name} do not leave, and no results come`,
      "mailchute bridge",
    );
  const { room = 0, begun = 0, why_none: none = [] } = bridge.targets[name] ?? {};
  if (!bridge.is_connected)
    return gate(
      `the servers of the cluster cannot be reached: ${bridge.servers.join(", ")}`,
      "start them; it goes on by itself",
    );
  if (bridge.trouble !== undefined)
    return gate(`no results come from ${name}: ${bridge.trouble}`, "mailchute cluster init");
  if (room === 0) {
    const reasons = none.length === 0 ? "" : ` (${none.join("; ")})`;
    return gate(
      `no machine with free slots serves ${name}${reasons}${sentText(sent, begun)}`,
      `mailchute cluster ls; at a machine: mailchute run and mailchute bridge, with cluster: {serves: [${name}]}`,
    );
  }
  if (sent === 0 && !isFull) return undefined;
  const tasks = Object.fromEntries(
    bridge.begun
      .filter(({ target }) => target === name)
      .map(({ id, machine }) => [id, `the machine ${machine} has it`]),
  );
  const why = `machines that serve ${name} have ${room} slots${sentText(sent, begun)}`;
  // It is normal that all slots are in use. Tasks also wait for slots of this machine.
  const more = { agents: isFull ? [...agents] : [], tasks, is_well: true };
  return gate(why, "wait; mailchute cluster ls", more);
}

/** Says which tasks go on at servers and machines while no more are sent. Undefined when there are none. */
export function goesOnText({
  name,
  sent,
  bridge,
}: Pick<TargetState, "name" | "sent" | "bridge">): string | undefined {
  if (sent === 0) return undefined;
  const tasks = sent === 1 ? "1 task that was sent" : `${sent} tasks that were sent`;
  const goesOn = `${tasks} for ${name} before ${sent === 1 ? "goes" : "go"} on`;
  if (bridge === undefined) return goesOn;
  const begun = Math.min(sent, bridge.targets[name]?.begun ?? 0);
  return begun === sent
    ? goesOn
    : `${goesOn}: machines have ${begun} of them, and will take the rest`;
}

function sentText(sent: number, begun: number): string {
  return sent === 0 ? "" : `; ${sent} sent, ${Math.min(sent, begun)} of them begun`;
}
