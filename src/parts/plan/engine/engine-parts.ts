/** What the services of the plan engine share. Types only. */
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
  /** While the pool is paused, only nodes that were launched before the pause may begin. */
  control: Pick<ControlFile, "current">;
  /** Reads the new lines of the journal. */
  readJournal(): void;
  /** True if the task of this id waits for its next attempt and needs no worker now. */
  isDelayed(id: string): boolean;
  /** False while no task of this agent may start, as while its account is at its limit. */
  mayStart(agent: string): boolean;
}

export interface EngineParts extends PlanParts {
  active: ActiveNodes;
  questions: Questions;
}
