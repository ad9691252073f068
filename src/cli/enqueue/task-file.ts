/** The port for a part that makes tasks of a file in a form of its own, such as a Markdown list. Types only. */
import type { EnqueueContext } from "./task-options.ts";

export interface TaskFile {
  /** Whether the file, by its name and the options, is meant for this part. */
  fits(ctx: EnqueueContext, file: string): boolean;
  /** Submits its tasks. @returns the exit code */
  enqueue(ctx: EnqueueContext, file: string): Promise<number>;
}
