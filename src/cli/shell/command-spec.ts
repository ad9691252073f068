/**
 * The declaration of a command. Parsing, checking, `--help` and completion all come from it, never by hand.
 *
 * A file in `commands/` exports `command` (one verb) or `commands` (several verbs by name):
 *
 *     export const command = defineCommand({
 *       usage: "[ID…] [--timeout S]",                       // what follows the verb, for --help
 *       args: { min: 0, max: Infinity },                    // positionals; left out = none
 *       options: {
 *         timeout: { type: "duration", unit: "s", value: "S", help: "give up after this long" },
 *         after: { type: "text", value: "ID", many: true, help: "…" },
 *         quiet: { type: "flag", short: "q", help: "…" },
 *       },
 *       async run(ctx) {
 *         ctx.options.timeout;   // number | undefined, in milliseconds
 *         ctx.options.after;     // string[]; "0012" stays "0012"
 *         ctx.options.quiet;     // boolean
 *         return EXIT.ok;
 *       },
 *     });
 *
 * The name and the summary of each verb are in `registry.ts`, because a list of them must not load the modules.
 * Every command also understands --state, --json, --no-color and --help. Errors are thrown: `main` reports them and
 * maps their code to an exit code; `ErrUsage` becomes 2. With --json, print one document by `ctx.out.json`.
 */
import { compact } from "../../core/compact.ts";
import { MailchuteError } from "../../core/errors.ts";
import { NODE_PRIORITIES, PRIORITY_MAX } from "../../core/priority.ts";

interface OptionBase {
  /** One sentence without a full stop; wrapped by --help. */
  help: string;
  /** One letter. */
  short?: string;
  /** Other names that people type for it. The error then suggests this option, not one with a similar spelling. */
  alsoCalled?: readonly string[];
  /** Left out of --help. */
  hidden?: boolean;
}

interface FlagOption extends OptionBase {
  /** boolean; absent = false. */
  type: "flag";
}

interface ToggleOption extends OptionBase {
  /** `--live` and `--no-live`: boolean | undefined. */
  type: "toggle";
}

interface TextOption extends OptionBase {
  /** string | undefined, exactly as typed; string[] with `many`. */
  type: "text";
  /** What the value is called in --help. */
  value: string;
  many?: true;
  /** The only values allowed. */
  choices?: readonly string[];
  /** Also a whole number, at most so far from 0. */
  orNumber?: number;
}

interface NumberOption extends OptionBase {
  /** Integer | undefined. */
  type: "number";
  value: string;
  min?: number;
  max?: number;
}

interface DurationOption extends OptionBase {
  /** Milliseconds | undefined. Typed as 500ms, 10s, 5m, 2h, 1d, or a bare number of `unit`. */
  type: "duration";
  value: string;
  unit: "ms" | "s";
}

interface SizeOption extends OptionBase {
  /** Bytes | undefined. Typed as 500M, 2G or a bare number of bytes. Each unit is 1024 times the unit before it. */
  type: "size";
  value: string;
}

export type OptionSpec =
  | FlagOption
  | ToggleOption
  | TextOption
  | NumberOption
  | DurationOption
  | SizeOption;
/** By long name without the dashes, in kebab-case. */
export type OptionTable = Readonly<Record<string, OptionSpec>>;

type ValueOf<O extends OptionSpec> = O extends FlagOption
  ? boolean
  : O extends ToggleOption
    ? boolean | undefined
    : O extends TextOption
      ? O extends { many: true }
        ? string[]
        : string | undefined
      : number | undefined;

type OptionValues<O extends OptionTable> = { readonly [K in keyof O]: ValueOf<O[K]> };

/** The output of a command: stdout carries the answer, stderr everything else. */
export interface Output {
  /** One line on stdout. Text that came from files must have gone through `safe()` of render.ts. */
  line(text?: string): void;
  /** One JSON value as one line on stdout. */
  json(value: unknown): void;
  /** Writes bytes or text to stdout unchanged; resolves when the reader has room for more. */
  raw(chunk: string | Uint8Array): Promise<void>;
  /** The same for stderr. */
  rawError(chunk: string | Uint8Array): Promise<void>;
  /** One line on stderr, prefixed with `mailchute: `. */
  note(text: string): void;
}

export interface Context<O extends OptionTable = OptionTable> {
  /** Absolute path of the state tree. It need not exist. */
  stateDir: string;
  /** What chose the tree: see `state-dir.ts`. */
  stateFrom: "flag" | "environment" | "here" | "above";
  /** True when --json was given. */
  json: boolean;
  /** True when stdout is a terminal and colour is not switched off. */
  colour: boolean;
  /** True when stdout is a terminal. */
  isTerminal: boolean;
  /** Width to fit tables into. */
  columns: number;
  cwd: string;
  env: NodeJS.ProcessEnv;
  options: OptionValues<O>;
  /** The words without the verb and the second word, exactly as typed. */
  positionals: readonly string[];
  /** The second word of a two-word command; "" when the command has none. */
  subcommand: string;
  /** The words after `--`; undefined when there was no `--`. */
  rest: readonly string[] | undefined;
  out: Output;
}

export interface CommandSpec<O extends OptionTable = OptionTable> {
  /** The text after the verb on the usage line. */
  usage: string;
  /** How many positionals are allowed. Default: none. The second word does not count. */
  args?: { min: number; max: number };
  /** True when `-- CMD ARGS…` may follow. */
  takesRest?: boolean;
  /** True for `run` and similar verbs: the process continues even when its stdout is closed. */
  isLongLived?: boolean;
  /** True for verbs that only stream: they end when the reader of their stdout is gone. Other verbs finish their work. */
  endsWithReader?: boolean;
  /** The possible second words, with their summaries. One of them is then required; without arguments `ls` may be left out. */
  subcommands?: Readonly<Record<string, string>>;
  /** Words that people try and that this verb does not have, with what to do in their place. */
  otherWays?: Readonly<Record<string, string>>;
  /** More paragraphs for --help, which wraps them. */
  details?: readonly string[];
  /** Whole command lines without the leading `mailchute `. */
  examples?: readonly string[];
  options: O;
  /** @returns the exit code */
  run(ctx: Context<O>): Promise<number>;
}

/** What a file in `commands/` exports: one of the two. */
export interface CommandModule {
  command?: CommandSpec;
  commands?: Readonly<Record<string, CommandSpec>>;
}

/** Short forms for options without further conditions. A bare number for a duration means seconds. */
export const textOption = (value: string, help: string) => ({ type: "text", value, help }) as const;
export const durationOption = (value: string, help: string) =>
  ({ type: "duration", unit: "s", value, help }) as const;
export const sizeOption = (value: string, help: string) => ({ type: "size", value, help }) as const;
export const numberOption = (
  value: string,
  help: string,
  limits: { min?: number; max?: number } = {},
) => ({ type: "number", value, help, ...limits }) as const;

/** A priority, of a task as of a node of the plan: a word or a number. `priorityOf` reads it. */
export const priorityOption = (help: string) =>
  ({
    type: "text",
    value: "N",
    choices: NODE_PRIORITIES,
    orNumber: PRIORITY_MAX,
    help,
  }) as const;

/** The value of a `priorityOption`: a number stays one. */
export function priorityOf(typed: string | undefined): string | number | undefined {
  return typed === undefined || (NODE_PRIORITIES as readonly string[]).includes(typed)
    ? typed
    : Number(typed);
}

/** Gives `run` the types of its options. */
export function defineCommand<const O extends OptionTable>(spec: CommandSpec<O>): CommandSpec {
  // Safe because `main` fills the options from this same table.
  return spec as unknown as CommandSpec;
}

/** The command line itself is wrong: exit code 2. */
export class ErrUsage extends MailchuteError {
  constructor(message: string, hint?: string) {
    super("ErrUsage", message, compact({ hint }));
  }
}
