/** The port for a part that makes tasks from a file in its own format, such as a Markdown list. Types only. */
import type { EnqueueContext } from "./task-options.ts";

export interface TaskFile {
  /** Whether the file is meant for this part, by its name and the options. */
  fits(ctx: EnqueueContext, file: string): boolean;
  /** Submits its tasks. @returns the exit code */
  enqueue(ctx: EnqueueContext, file: string): Promise<number>;
}
