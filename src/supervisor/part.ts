/** What a part is made with. Shapes only. */
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
  readonly queue: Pick<Queue, "backlog" | "dispatcher">;
  readonly limits: StartLimits;
  /** Takes the commands that the part carries out. */
  readonly commands: CommandTable;
}

/** Called once for each supervisor, before anything runs. */
export type MakePart = (host: PartHost) => Part;
