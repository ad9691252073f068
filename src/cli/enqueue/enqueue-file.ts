/** `enqueue --file`: submits one task per line, in groups, with each line's exact bytes. Bad lines are reported and counted. */
import fs from "node:fs";
import { decodeLine as decodeBatchLine } from "../../codec/batch-codec.ts";
import { decodeLine } from "../../codec/task-codec.ts";
import { ErrIo, messageOf } from "../../core/errors.ts";
import { TASK_BYTES_MAX } from "../../core/limits.ts";
import { checkExec } from "../../core/matching.ts";
import type { AgentSettings } from "../../core/settings.ts";
import { openInput } from "../../host/regular-file.ts";
import { systemClock } from "../../host/system-clock.ts";
import { newId } from "../../mailbox/files/random.ts";
import { countText } from "../../text/render.ts";
import { EXIT } from "../shell/exit-codes.ts";
import { foundValue } from "../shell/found-value.ts";
import type { OpenMailbox } from "../shell/options.ts";
import { FieldCheck } from "./field-check.ts";
import { type NumberedSubmission, type SubmitCounts, SubmitGroups } from "./submit-groups.ts";
import type { EnqueueContext } from "./task-options.ts";

const NEWLINE = 0x0a;
const BRACE = 0x7b;
const CLOSING_BRACE = 0x7d;
/** How many bytes of a file are read at once. */
const READ_BYTES = 256 * 1024;

type FileContext = Pick<EnqueueContext, "out" | "env" | "options">;

/** The id of the task of a line. @throws JsonFault, ErrInvalidTask */
type ReadLine = (text: Buffer, number: number) => string;

/** @param onIds gets the ids of each group that is now in the inbox. @throws ErrIo when the file cannot be read */
export function enqueueFile(
  ctx: FileContext,
  { trays, loaded }: OpenMailbox,
  file: string,
  onIds: (ids: readonly string[]) => void,
): Promise<SubmitCounts> {
  const groups = new SubmitGroups(ctx.out, trays, onIds);
  return readFile(ctx, file, groups, taskReader(ctx, loaded.settings.agents));
}

/** Checks the lines and prints those that are good, without submitting them. @returns the exit code. @throws ErrIo */
export async function tryFile(
  ctx: FileContext,
  agents: readonly AgentSettings[],
  file: string,
  isBatch: boolean,
): Promise<number> {
  const read = isBatch ? batchReader(ctx) : taskReader(ctx, agents);
  const { bad } = await readFile(ctx, file, new SubmitGroups(ctx.out, undefined, () => {}), read);
  if (bad > 0) ctx.out.note(`${countText(bad)} ${bad === 1 ? "line" : "lines"} would be refused`);
  return bad > 0 ? EXIT.failed : EXIT.ok;
}

function taskReader(ctx: FileContext, agents: readonly AgentSettings[]): ReadLine {
  const fields = new FieldCheck(ctx);
  return (text) => {
    const task = decodeLine(text, () => newId(systemClock.wallMs()));
    checkExec(task, agents, { id: task.id });
    fields.check(task, "task");
    return task.id;
  };
}

function batchReader(ctx: FileContext): ReadLine {
  const fields = new FieldCheck(ctx);
  return (text, number) => {
    const task = decodeBatchLine(text.toString("utf8"), ctx.options.id ?? "batch", number);
    fields.check(task, "line");
    return task.id;
  };
}

async function readFile(
  ctx: FileContext,
  file: string,
  groups: SubmitGroups,
  read: ReadLine,
): Promise<SubmitCounts> {
  for await (const lines of linesOf(file)) {
    for (const { bytes, number } of lines) {
      try {
        if (bytes === undefined) throw new Error(`the line is longer than ${TASK_BYTES_MAX} bytes`);
        groups.add(submissionOf(bytes, number, read));
      } catch (error) {
        const found = foundValue(error, ctx.env);
        groups.noteBad(number, `${messageOf(error)}${found === undefined ? "" : `: ${found}`}`);
      }
      if (groups.isFull) await groups.flush();
    }
    // The next read overwrites these bytes. Also, a sender that writes line by line waits for each line.
    await groups.flush();
  }
  return groups.counts;
}

/** The unchanged line becomes the file; a missing id is only in the file's name. @throws JsonFault, ErrInvalidTask */
function submissionOf(line: Buffer, number: number, read: ReadLine): NumberedSubmission {
  const hasBreak = line.at(-1) === NEWLINE;
  const text = hasBreak ? line.subarray(0, -1) : line;
  const id = read(text, number);
  const isTrimmed = hasBreak && text[0] === BRACE && text.at(-1) === CLOSING_BRACE;
  const bytes = isTrimmed ? line : Buffer.from(`${text.toString("utf8").trim()}\n`, "utf8");
  return { id, bytes, line: number };
}

interface Line {
  /** The line with its line break, if it has one. Undefined for a line that is too long, which is skipped without being kept. */
  bytes: Buffer | undefined;
  number: number;
}

/** Lines that are not blank. Each group holds the lines of one read. */
async function* linesOf(file: string): AsyncGenerator<Line[]> {
  const source: AsyncIterable<Buffer> | Iterable<Buffer> =
    file === "-" ? process.stdin : piecesOf(file);
  let rest: Buffer = Buffer.alloc(0);
  let isSkipping = false;
  let number = 0;
  try {
    for await (const chunk of source) {
      const lines: Line[] = [];
      const data: Buffer = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
      let from = 0;
      for (let at = data.indexOf(NEWLINE); at !== -1; at = data.indexOf(NEWLINE, from)) {
        number++;
        const line = data.subarray(from, at + 1);
        from = at + 1;
        if (isSkipping || line.length - 1 > TASK_BYTES_MAX)
          lines.push({ bytes: undefined, number });
        else if (!isBlank(line)) lines.push({ bytes: line, number });
        isSkipping = false;
      }
      rest = data.subarray(from);
      if (rest.length > TASK_BYTES_MAX) {
        isSkipping = true;
        rest = Buffer.alloc(0);
      }
      yield lines;
    }
  } catch (error) {
    throw new ErrIo(`cannot read the tasks: ${messageOf(error)}`, {
      path: file,
      phase: "read",
      cause: error,
      hint: "lines before the fault were submitted; identical ones may be sent again",
    });
  }
  if (isSkipping) yield [{ bytes: undefined, number: number + 1 }];
  else if (!isBlank(rest)) yield [{ bytes: rest, number: number + 1 }];
}

/**
 * Pieces of whole lines. Only the last line and too long lines may be cut. A piece is valid until the next one is read.
 * It uses no stream, because the first read of a stream would start all the threads that wait for the disk with `power`.
 */
function* piecesOf(file: string): Generator<Buffer> {
  const fd = openInput(file);
  const buffer = Buffer.allocUnsafeSlow(TASK_BYTES_MAX + READ_BYTES);
  let size = 0;
  try {
    for (;;) {
      const got = fs.readSync(fd, buffer, size, Math.min(READ_BYTES, buffer.length - size), null);
      size += got;
      const data = buffer.subarray(0, size);
      if (got === 0) {
        yield data;
        return;
      }
      let end = data.lastIndexOf(NEWLINE) + 1;
      // The line is too long: the caller skips it without keeping it.
      if (end === 0 && size === buffer.length) end = size;
      if (end > 0) yield data.subarray(0, end);
      buffer.copyWithin(0, end, size);
      size -= end;
    }
  } finally {
    fs.closeSync(fd);
  }
}

function isBlank(line: Buffer): boolean {
  // Nearly all lines begin with a brace.
  if (line[0] === BRACE) return false;
  return line.toString("latin1").trim() === "";
}
