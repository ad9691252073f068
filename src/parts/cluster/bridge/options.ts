/** What a bridge needs, and what it shows of itself. */
import type { Task } from "../../../core/task.ts";
import type { NatsBroker } from "../nats/broker.ts";
import type { Begun } from "../protocol/begun.ts";
import type { Machines } from "../protocol/machines.ts";
import type { LocalLogs } from "../tree/local-logs.ts";
import type { MachineFiles } from "../tree/machine-files.ts";
import type { Held, OriginFiles } from "../tree/origin-files.ts";

/** So many renewals of a job, and heartbeats, are within `ack_wait`. */
export const BEATS_PER_WAIT = 6;

/** What the servers did not take is sent again after this time, and not at once: they may be busy with coming back (ms). */
export const REFUSED_REST_MS = 1000;

export interface BridgeOptions {
  /** The name of this machine. */
  name: string;
  tree: string;
  origin: OriginFiles;
  machine: MachineFiles;
  /** As far as it is open to others: tests have another one. */
  broker: Pick<NatsBroker, keyof NatsBroker>;
  /** The targets that this machine serves; none: it only sends. */
  serves: readonly string[];
  /** Whether it sends tasks to others: it may have no right to look for them. */
  sends: boolean;
  /** How many tasks of others may be here at once. */
  room: () => number;
  /** Whether the pool of this tree is paused: then nothing more is sent, as nothing more starts here. */
  isPaused: () => boolean;
  /** Whether it takes no more tasks, so that it can be stopped. */
  isDraining: () => boolean;
  drain: (isOn: boolean) => void;
  /** The version of mailchute. */
  program: string;
  ackWaitMs: number;
  /** The name at the machine of the agent of a task. */
  agentOf: (task: Task) => string;
  /** Of the runs that this machine has, or had, for others. */
  logs: Pick<LocalLogs, "part">;
  /** What the other machines say of themselves. */
  machines: Machines;
  /** Tells what has changed. */
  publish: (view: BridgeView) => void;
  tell: (message: string) => void;
}

/** What a bridge does, for those who look at it. */
export interface BridgeView {
  /** Tasks of this tree that are on their way, by target. */
  held: readonly Held[];
  /** By dispatch: what the machine says that has it. */
  begun: ReadonlyMap<string, Begun>;
  /** By tree: how many results are told again and again, without an answer. */
  unanswered: ReadonlyMap<string, number>;
}
