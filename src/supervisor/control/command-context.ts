/** The parts of a running pool that commands steer. Shapes only. */
import type { Backlog } from "../../core/backlog.ts";
import type { Settings } from "../../core/settings.ts";
import type { StateTree } from "../../core/state-tree.ts";
import type { Telemetry } from "../../journal/telemetry.ts";
import type { Trays } from "../../mailbox/trays.ts";
import type { ControlFile } from "../documents/control-file.ts";
import type { Pool } from "../pool/pool.ts";
import type { Dispatcher } from "../queue/dispatcher.ts";

/** What commands need of a plan. */
export interface CommandedPlan {
  /** Resolves when it is known whether there is a plan, and what it says. */
  readonly started: Promise<void>;
  /** Opens the planner node again; resolves when that will survive a crash. False when there is no such node. */
  reopenPlanner(): Promise<boolean>;
  isNode(id: string): boolean;
  /** Whether what the mailbox holds under this id was dropped by a person or program, and not made from a node. */
  isForeignLive(id: string): boolean;
  isOpen(id: string): boolean;
  /** Nodes that are in progress and that no worker has claimed yet. */
  unbegun(): string[];
  /** The node's task runs, or is taken back: it does not begin while the pool is paused. */
  noteBegun(id: string): void;
  /** Takes a node's task that waits in the inbox out again: the node is open. False when it does not wait there. */
  withdraw(id: string): Promise<boolean>;
}

export interface CommandContext {
  tree: StateTree;
  trays: Trays;
  backlog: Backlog;
  dispatcher: Dispatcher;
  pool: Pool;
  control: ControlFile;
  telemetry: Telemetry;
  settings: Settings;
  newOwner: () => string;
  plan: CommandedPlan;
  /** True for `--once`: the number of workers is fixed. */
  isFixed: boolean;
  /** A line for the terminal. */
  notice(message: string): void;
  shareSlots(): void;
  wake(): void;
  stop(drain: boolean): void;
  hint(file: string): void;
}
