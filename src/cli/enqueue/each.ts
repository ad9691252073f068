/** `enqueue --each`: makes a task from each line. It checks all lines before it submits the first task. */
import { parse } from "node:path";
import { buffer } from "node:stream/consumers";
import { ErrIo, messageOf } from "../../core/errors.ts";
import { readInput } from "../../host/regular-file.ts";
import { ErrUsage } from "../shell/command-spec.ts";
import { buildTask } from "./build-task.ts";
import { type NumberedSubmission, SubmitGroups } from "./submit-groups.ts";
import type { EnqueueContext, TaskSource } from "./task-options.ts";
import { tellAll } from "./tell-all.ts";

/** For more lines than this, a batch is the right form. */
const ITEMS_MAX = 100_000;

/** What stands for a line, or for a part of it. */
const PLACES = /\{(?:#|\.|\/\/?)?\}/g;
/** All but the number of the line. */
const OF_LINE = /\{(?:\.|\/\/?)?\}/;

interface Item {
  text: string;
  /** Counted from 1; lines that are blank have no item. */
  number: number;
  /** The number of its line in the file, counted from 1. Blank lines count. */
  line: number;
}

export async function enqueueEach(ctx: EnqueueContext, file: string): Promise<number> {
  refuseMisuse(ctx);
  const source = withPlaceholder(ctx);
  const items = itemsOf(await bytesOf(file), ctx.options.null);
  const tasks = items.map((item) => submissionOf(source, item));
  if (ctx.options["dry-run"]) {
    for (const { bytes } of tasks) await ctx.out.raw(bytes);
    return 0;
  }
  return tellAll(ctx, async ({ trays }, onIds) => {
    const groups = new SubmitGroups(ctx.out, trays, onIds);
    for (const task of tasks) {
      groups.add(task);
      if (groups.isFull) await groups.flush();
    }
    await groups.flush();
    return groups.counts;
  });
}

function refuseMisuse({ options, rest }: EnqueueContext): void {
  const other = (["file", "batch", "vars", "inherit-env"] as const).find((name) => options[name]);
  if (other !== undefined) throw new ErrUsage(`--each and --${other} exclude each other`);
  if (options.shell !== undefined && rest !== undefined)
    throw new ErrUsage("--shell and -- CMD exclude each other");
  // The shell would run commands from the text of a line.
  if (options.shell !== undefined && OF_LINE.test(options.shell))
    throw new ErrUsage(
      "--shell holds {}, and a line could then be a command of its own",
      'write "$1" for the line and "$2" for its number',
    );
  if (options.dedup !== undefined && !OF_LINE.test(options.dedup))
    throw new ErrUsage(
      "--dedup holds no {}: all tasks would be one",
      'for example --dedup "lint {}"',
    );
}

/** Without a placeholder, the line becomes the last argument of the program, as with xargs, or the prompt of an agent without one. */
function withPlaceholder(source: TaskSource): TaskSource {
  const { options, rest } = source;
  if (rest !== undefined && options.shell === undefined)
    return { ...source, rest: hasPlace(source) ? rest : [...rest, "{}"] };
  const { agent, shell, prompt, payload } = options;
  const isBare = shell === undefined && prompt === undefined && payload === undefined;
  if (isBare && agent === undefined)
    throw new ErrUsage("there is nothing to run", "give -- CMD, or --shell, or --agent NAME");
  if (isBare) return { ...source, options: { ...options, prompt: "{}" } };
  if (shell === undefined && !hasPlace(source))
    throw new ErrUsage(
      "no option holds {}: all tasks would be the same",
      'for example --prompt "add tests for {}"',
    );
  return source;
}

function hasPlace({ options, rest = [] }: TaskSource): boolean {
  const { prompt = "", cwd = "", env } = options;
  return [...rest, ...env, prompt, cwd].some((text) => OF_LINE.test(text));
}

/** @throws ErrUsage naming the line */
function submissionOf(source: TaskSource, item: Item): NumberedSubmission {
  const { options, rest } = source;
  const { number, line } = item;
  const values = valuesOf(item);
  // Replace by a function, because `$&` in a line must not act as a pattern.
  const fill = (text: string): string =>
    text.replace(PLACES, (place) => values[PLACEHOLDERS.indexOf(place)] ?? place);
  const filled = (text: string | undefined): string | undefined =>
    text === undefined ? undefined : fill(text);
  const own: TaskSource = {
    ...source,
    rest: rest?.map(fill),
    options: {
      ...options,
      id: options.id === undefined ? undefined : `${options.id}.${number}`,
      title: filled(options.title),
      prompt: filled(options.prompt),
      cwd: filled(options.cwd),
      dedup: filled(options.dedup),
      env: options.env.map(fill),
      verify: options.verify.map(inShell),
    },
  };
  try {
    // Leave out the time of creation, so that the same line makes the same task again.
    const { id, text } = buildTask(own, undefined, undefined, values);
    return { id, bytes: Buffer.from(text, "utf8"), line };
  } catch (error) {
    throw new ErrUsage(`line ${line}: ${messageOf(error)}`, "nothing was submitted");
  }
}

/** No text of JavaScript is longer. */
const INPUT_BYTES_MAX = 512 * 1024 * 1024;

/** In a command line for the shell, they are "$1" to "$5". */
const PLACEHOLDERS = ["{}", "{#}", "{.}", "{/}", "{//}"];

/** The values of the placeholders, in their order. */
function valuesOf({ text, number }: Item): string[] {
  const { dir, base, ext } = parse(text);
  const bare = ext === "" ? text : text.slice(0, -ext.length);
  return [text, String(number), bare, base, dir === "" ? "." : dir];
}

/** A command line with the shell's parameters in place of the placeholders, because the shell would run commands from the text of a line. */
function inShell(line: string): string {
  let quote = "";
  return line.replace(/\\.|["']|\{(?:#|\.|\/\/?)?\}/gs, (part) => {
    const index = PLACEHOLDERS.indexOf(part);
    if (index !== -1) {
      const parameter = `\${${index + 1}}`;
      return quote === '"' ? parameter : `${quote}"${parameter}"${quote}`;
    }
    if (part === quote) quote = "";
    else if (quote === "" && part.length === 1) quote = part;
    return part;
  });
}

async function bytesOf(file: string): Promise<Buffer> {
  try {
    return file === "-" ? await buffer(process.stdin) : readInput(file, INPUT_BYTES_MAX);
  } catch (error) {
    throw new ErrIo(`cannot read the lines: ${messageOf(error)}`, {
      path: file,
      phase: "read",
      cause: error,
      hint: "nothing was submitted",
    });
  }
}

/** @throws ErrUsage for bytes that are no text, and for too many lines */
function itemsOf(bytes: Buffer, isByNull: boolean): Item[] {
  const what = isByNull ? "item" : "line";
  const items: Item[] = [];
  let line = 0;
  const end = isByNull ? 0 : 0x0a;
  for (let from = 0; from < bytes.length; ) {
    const at = bytes.indexOf(end, from);
    const until = at === -1 ? bytes.length : at;
    const text = decode(bytes.subarray(from, until), `${what} ${++line}`);
    from = until + 1;
    const item = isByNull ? text : text.replace(/\r$/, "");
    if (item.trim() === "") continue;
    items.push({ text: item, number: items.length + 1, line });
    if (items.length > ITEMS_MAX)
      throw new ErrUsage(
        `there are more than ${ITEMS_MAX} ${what}s; nothing was submitted`,
        "write a task into each line of a file, and call mailchute enqueue --batch --file",
      );
  }
  if (items.length === 0) throw new ErrUsage(`there is no ${what} to make a task of`);
  return items;
}

const UTF8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

function decode(bytes: Buffer, where: string): string {
  // An argument of a program cannot hold a zero byte.
  if (bytes.includes(0))
    throw new ErrUsage(
      `${where} holds a zero byte; nothing was submitted`,
      "use -0 when zero bytes part the items",
    );
  try {
    return UTF8.decode(bytes);
  } catch {
    throw new ErrUsage(`${where} is not UTF-8; nothing was submitted`);
  }
}
