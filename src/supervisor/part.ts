/** Types only: what a part gets when it is made. */
import type { CommandTable } from "./control/command-context.ts";
import type { ControlFile } from "./documents/control-file.ts";
import type { Environment } from "./environment/environment.ts";
import type { JournalReader } from "./environment/journal-reader.ts";
import type { Part } from "./environment/part.ts";
import type { Queue } from "./queue/queue.ts";
import type { StartLimits } from "./queue/start-limits.ts";

export interface PartHost {
  readonly env: Environment;
  readonly journal: JournalReader;
  readonly control: ControlFile;
  readonly queue: Pick<Queue, "accepted" | "backlog" | "pool">;
  readonly limits: StartLimits;
  /** The table to which the part adds its commands. */
  readonly commands: CommandTable;
}

/** Called once for each supervisor, before any task runs. */
export type MakePart = (host: PartHost) => Part;
