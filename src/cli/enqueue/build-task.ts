/** Builds the text of a task from the options of `enqueue`. */
import { createHash } from "node:crypto";
import { parseObject } from "../../codec/json.ts";
import { checkTask } from "../../codec/task-codec.ts";
import { compact } from "../../core/compact.ts";
import { messageOf } from "../../core/errors.ts";
import { systemClock } from "../../host/system-clock.ts";
import { newId } from "../../mailbox/files/random.ts";
import { ErrUsage } from "../shell/command-spec.ts";
import { fieldsOf, type TaskSource } from "./task-options.ts";

/**
 * The task's id and its JSON text.
 * @param createdAt unix seconds; undefined: the time of the file counts
 * @param known the id; default: the id of the options
 * @param shellArgs the arguments "$1", "$2" and so on of the command line of `--shell`
 * @throws ErrUsage, ErrInvalidTask
 */
export function buildTask(
  ctx: TaskSource,
  createdAt: number | undefined,
  known?: string,
  shellArgs: readonly string[] = [],
): { id: string; text: string } {
  const { options, rest } = ctx;
  if (options.id !== undefined && options.dedup !== undefined)
    throw new ErrUsage("--id and --dedup exclude each other");
  const isWindowed = options["dedup-window"] !== undefined;
  if (isWindowed && options.dedup === undefined)
    throw new ErrUsage("--dedup-window needs --dedup KEY");
  if (rest !== undefined && options.shell !== undefined)
    throw new ErrUsage("--shell and -- CMD exclude each other");
  if (rest?.length === 0) throw new ErrUsage("there is no program after --");
  const id =
    known ??
    options.id ??
    (options.dedup === undefined || isWindowed
      ? newId(systemClock.wallMs())
      : idOfKey(options.dedup));
  const task = compact({ id, created_at: createdAt, ...fieldsOf(ctx, shellArgs) });
  const payload = options.payload === undefined ? undefined : readPayload(options.payload);
  const isEmpty =
    rest === undefined &&
    options.shell === undefined &&
    options.agent === undefined &&
    options.prompt === undefined &&
    payload === undefined;
  if (isEmpty && options.title === undefined) {
    throw new ErrUsage(
      "there is nothing to run",
      "give a program after --, or --shell, or --agent with --prompt, or --payload, or --file tasks.ndjson",
    );
  }
  const head = JSON.stringify(task);
  checkTask(payload === undefined ? task : { ...task, payload: null }, id);
  return {
    id,
    text: payload === undefined ? `${head}\n` : `${head.slice(0, -1)},"payload":${payload}}\n`,
  };
}

/** Checks the payload as strictly as that of a dropped file, and returns it as it was typed. */
function readPayload(text: string): string {
  try {
    parseObject(Buffer.from(`{"payload":${text}}`, "utf8"), new Set(["payload"]));
  } catch (error) {
    throw new ErrUsage(
      `--payload is not JSON: ${messageOf(error)}`,
      "quote it for the shell: --payload '{\"a\":1}'",
    );
  }
  return text.trim();
}

/** The id for a key. The same key always gives the same id. */
function idOfKey(key: string): string {
  return `d-${createHash("sha256").update(key, "utf8").digest("hex").slice(0, 24)}`;
}
