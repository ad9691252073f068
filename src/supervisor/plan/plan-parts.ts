/** What the parts of the plan's engine work with. Shapes only. */
import type { Settings } from "../../core/settings.ts";
import type { StateTree } from "../../core/state-tree.ts";
import type { Telemetry } from "../../journal/telemetry.ts";
import type { Trays } from "../../mailbox/trays.ts";
import type { KvStore } from "../../roadmap/kv.ts";
import type { CheckpointDesk } from "./checkpoint-desk.ts";
import type { Flights } from "./flights.ts";
import type { PlanStore } from "./plan-store.ts";

export interface PlanParts {
  tree: StateTree;
  settings: Settings;
  trays: Trays;
  telemetry: Telemetry;
  store: PlanStore;
  kv: KvStore;
  /** Brings what the journal says up to date: calls `addLine`. */
  readJournal(): void;
  /** Whether the task of this id waits for its next attempt, and needs no worker. */
  isDelayed(id: string): boolean;
  /** Takes a node's task out of the mailbox, if it waits there. */
  takeBack(id: string): Promise<void>;
  alert(kind: string, message: string): void;
  report(key: string, message: string): void;
  hint(file: string): void;
  wake(): void;
}

/** With what the engine's own parts share. */
export interface EngineParts extends PlanParts {
  flights: Flights;
  desk: CheckpointDesk;
}
