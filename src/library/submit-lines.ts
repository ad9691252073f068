/** Submits tasks as the lines of one batch, as a program yields them. */
import { decodeLine } from "../codec/task-codec.ts";
import { ErrInvalidTask } from "../core/errors.ts";
import type { Trays } from "../mailbox/files/trays.ts";
import { type SubmittedBatch, submitBatch } from "../mailbox/submit/submit-batch.ts";
import type { NewTask } from "./submissions.ts";

/** Lines are written in pieces of about this size (bytes). */
const PIECE_BYTES = 256 * 1024;

/** @throws ErrInvalidTask, ErrTaskExists, ErrIo; what the source throws; the reason of the signal */
export async function submitLines(
  trays: Trays,
  id: string,
  tasks: Iterable<NewTask> | AsyncIterable<NewTask>,
  bytesMax: number,
  signal: AbortSignal | undefined,
): Promise<SubmittedBatch> {
  const source = new LineSource(tasks, signal);
  try {
    return await submitBatch(trays, id, source.pieces(), bytesMax);
  } catch (error) {
    throw source.fault === undefined ? error : source.fault.error;
  }
}

class LineSource {
  /** The error that the source threw. The caller gets this error, and not one about the disk. */
  fault: { error: unknown } | undefined;

  constructor(
    private readonly tasks: Iterable<NewTask> | AsyncIterable<NewTask>,
    private readonly signal: AbortSignal | undefined,
  ) {}

  async *pieces(): AsyncGenerator<Buffer> {
    let lines: Buffer[] = [];
    let bytes = 0;
    try {
      this.signal?.throwIfAborted();
      let number = 0;
      for await (const task of this.tasks) {
        this.signal?.throwIfAborted();
        number++;
        const line = toLine(task, number);
        lines.push(line);
        bytes += line.length;
        if (bytes < PIECE_BYTES) continue;
        yield Buffer.concat(lines);
        lines = [];
        bytes = 0;
      }
    } catch (error) {
      this.fault = { error };
      throw error;
    }
    if (lines.length > 0) yield Buffer.concat(lines);
  }
}

/** @throws ErrInvalidTask with the number of the line */
function toLine(task: NewTask, number: number): Buffer {
  const line = Buffer.from(`${JSON.stringify(task)}\n`, "utf8");
  try {
    decodeLine(line, () => "line");
    return line;
  } catch (error) {
    throw new ErrInvalidTask(`task ${number} of the batch: ${(error as Error).message}`, {
      phase: "enqueue",
      cause: error,
    });
  }
}
