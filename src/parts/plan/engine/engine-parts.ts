/** What the engine of the plan works with. Shapes only. */
import type { KvStore } from "../../../kv/store.ts";
import type { ControlFile } from "../../../supervisor/documents/control-file.ts";
import type { Environment } from "../../../supervisor/environment/environment.ts";
import type { ActiveNodes } from "./active-nodes.ts";
import type { Questions } from "./questions.ts";
import type { PlanStore } from "./store.ts";

export interface PlanParts {
  env: Environment;
  store: PlanStore;
  kv: KvStore;
  /** What the pool was told: while it is paused, only what was launched before begins. */
  control: Pick<ControlFile, "current">;
  /** Brings what the journal says up to date. */
  readJournal(): void;
  /** Whether the task of this id waits for its next attempt, and needs no worker. */
  isDelayed(id: string): boolean;
}

/** With what the parts of the engine share. */
export interface EngineParts extends PlanParts {
  active: ActiveNodes;
  questions: Questions;
}
