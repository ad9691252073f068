/** What the services of the plan engine share. Types only. */
import type { KvStore } from "../../../kv/store.ts";
import type { ControlFile } from "../../../supervisor/documents/control-file.ts";
import type { Environment } from "../../../supervisor/environment/environment.ts";
import type { StartLimits } from "../../../supervisor/queue/start-limits.ts";
import type { Questions } from "../answers.ts";
import type { ActiveNodes } from "./active-nodes.ts";
import type { PlanStore } from "./store.ts";

export interface EngineParts {
  env: Environment;
  store: PlanStore;
  kv: KvStore;
  active: ActiveNodes;
  questions: Questions;
  /** While the pool is paused, only nodes that were launched before the pause may begin. */
  control: Pick<ControlFile, "current">;
  /** When a command last set the node open (wall ms). */
  openedAtMs(id: string): number | undefined;
  /** Reads the new lines of the journal. */
  readJournal(): void;
  /** Says which tasks wait, which agents may start, and which completed work has not landed. */
  limits: Pick<StartLimits, "isPutOff" | "parts">;
}
