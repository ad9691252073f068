/** Reads the value of an option of `enqueue` from standard input. */
import { text } from "node:stream/consumers";
import { TASK_BYTES_MAX } from "../../core/limits.ts";
import { ErrUsage } from "../shell/command-spec.ts";
import type { EnqueueContext } from "./task-options.ts";

/** Options whose value may be `-`. */
const TEXTS = ["prompt", "payload"] as const;
/** Options that read stdin themselves when their value is `-`. */
const FILES = ["file", "each"] as const;

/** @returns the context with the text of stdin in place of `-`. @throws ErrUsage when two options read stdin, or the text is too long */
export async function withStdin(ctx: EnqueueContext): Promise<EnqueueContext> {
  const wanted = [...TEXTS, ...FILES].filter((name) => ctx.options[name] === "-");
  const [first, second] = wanted;
  if (second !== undefined)
    throw new ErrUsage(`--${first} - and --${second} - both want to read stdin`);
  const name = TEXTS.find((one) => one === first);
  if (name === undefined) return ctx;
  const value = await text(process.stdin);
  if (Buffer.byteLength(value) > TASK_BYTES_MAX)
    throw new ErrUsage(`--${name} -: stdin is longer than ${TASK_BYTES_MAX} bytes`);
  if (value.trim() === "") throw new ErrUsage(`--${name} -: stdin is empty`);
  return { ...ctx, options: { ...ctx.options, [name]: value } };
}
