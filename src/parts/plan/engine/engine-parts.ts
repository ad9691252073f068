/** What the parts of the plan's engine work with. Shapes only. */
import type { ControlDocument } from "../../../core/documents.ts";
import type { Settings } from "../../../core/settings.ts";
import type { StateTree } from "../../../core/state-tree.ts";
import type { Telemetry } from "../../../journal/telemetry.ts";
import type { KvStore } from "../../../kv/store.ts";
import type { Trays } from "../../../mailbox/trays.ts";
import type { Flights } from "./active-nodes.ts";
import type { CheckpointDesk } from "./questions.ts";
import type { PlanStore } from "./store.ts";

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
  /** What the pool was told: while it is paused, only what was launched before begins. */
  control(): Pick<ControlDocument, "paused" | "launched">;
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
