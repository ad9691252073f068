/** Types: what a bridge needs, and what it shows of itself. */
import type { Task } from "../../../core/task.ts";
import type { NatsBroker } from "../nats/broker.ts";
import type { Begun } from "../protocol/begun.ts";
import type { Machines } from "../protocol/machines.ts";
import type { LocalLogs } from "../tree/local-logs.ts";
import type { MachineFiles } from "../tree/machine-files.ts";
import type { Held, OriginFiles } from "../tree/origin-files.ts";
import type { Room } from "../tree/pool-room.ts";

/** How many times within `ack_wait` a job is renewed and a heartbeat is sent. */
export const BEATS_PER_WAIT = 6;

/** A refused message is sent again after this time and not at once, because the servers may be busy with their restart (ms). */
export const REFUSED_REST_MS = 1000;

export interface BridgeOptions {
  /** The name of this machine. */
  name: string;
  tree: string;
  origin: OriginFiles;
  machine: MachineFiles;
  /** Only the public members, because tests have another broker. */
  broker: Pick<NatsBroker, keyof NatsBroker>;
  /** The targets that this machine serves; empty when it only sends. */
  serves: readonly string[];
  /** Whether it sends tasks to others. If not, it may have no right to ask the servers for its jobs. */
  sends: boolean;
  /** How many tasks of others may be here at once. */
  room: () => Room;
  /** Whether the pool of this tree is paused. Then no more tasks are sent, as no more start here. */
  isPaused: () => boolean;
  /** True while it takes no more tasks, so that it can be stopped. */
  isDraining: () => boolean;
  drain: (isOn: boolean) => void;
  /** The version of mailchute. */
  program: string;
  ackWaitMs: number;
  /** The name that the agent of a task has at the other machine. */
  agentOf: (task: Task) => string;
  /** The logs of runs that this machine has or had for others. */
  logs: Pick<LocalLogs, "part">;
  /** The reports of other machines about themselves. */
  machines: Machines;
  /** Called after each look, to show the state of the bridge. */
  publish: (view: BridgeView) => void;
  tell: (message: string) => void;
}

/** The state of a bridge, for readers of its files. */
export interface BridgeView {
  /** Tasks of this tree that are on their way, by target. */
  held: readonly Held[];
  /** By dispatch: the machine that has it, and what that machine reports. */
  begun: ReadonlyMap<string, Begun>;
  /** By tree: the number of results that it has told more than once without an answer. */
  unanswered: ReadonlyMap<string, number>;
}
