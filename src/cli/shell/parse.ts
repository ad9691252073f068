/** Reads a command's arguments by its option table. A value stays text, as it was typed, until its type is known. */
import { parseArgs } from "node:util";
import { suggest } from "../../core/suggest.ts";
import { fieldJudge, taskFields } from "../../core/task-fields.ts";
import { ErrUsage, type OptionSpec, type OptionTable } from "./command-spec.ts";

export interface ParsedArguments {
  values: Record<string, boolean | string | string[] | number | undefined>;
  positionals: string[];
  /** The words after `--`. */
  rest: string[] | undefined;
}

/**
 * @param verb for messages
 * @throws ErrUsage
 */
export function parseArguments(
  verb: string,
  args: readonly string[],
  table: OptionTable,
): ParsedArguments {
  const end = args.indexOf("--");
  const own = end === -1 ? [...args] : args.slice(0, end);
  const rest = end === -1 ? undefined : args.slice(end + 1);
  const { tokens } = parseArgs({
    args: own,
    options: nodeOptions(table),
    strict: false,
    tokens: true,
    allowPositionals: true,
  });

  const values: ParsedArguments["values"] = {};
  for (const [name, spec] of Object.entries(table)) {
    values[name] =
      spec.type === "flag" ? false : spec.type === "text" && spec.many === true ? [] : undefined;
  }
  const positionals: string[] = [];
  for (const token of tokens) {
    if (token.kind === "positional") positionals.push(token.value);
    if (token.kind !== "option") continue;
    const isNo = token.name.startsWith("no-") && table[token.name] === undefined;
    const name = isNo ? token.name.slice(3) : token.name;
    const spec = Object.hasOwn(table, name) ? table[name] : undefined;
    if (spec === undefined || (isNo && spec.type !== "toggle"))
      throw unknownOption(verb, token.rawName, table, positionals);
    if (spec.type === "flag" || spec.type === "toggle") {
      if (token.value !== undefined)
        throw new ErrUsage(`${token.rawName} takes no value, found ${quote(token.value)}`);
      values[name] = !isNo;
      continue;
    }
    const value = token.value;
    if (value === undefined || (token.inlineValue === false && /^--?[A-Za-z]/.test(value))) {
      throw new ErrUsage(
        `${token.rawName} needs a value: ${valueText(spec)}`,
        value === undefined
          ? undefined
          : `write ${token.rawName}=${value} if that is meant as its value`,
      );
    }
    const before = values[name];
    if (Array.isArray(before)) before.push(readValue(token.rawName, value, spec) as string);
    else if (before !== undefined) throw new ErrUsage(`${token.rawName} is given twice`);
    else values[name] = readValue(token.rawName, value, spec);
  }
  return { values, positionals, rest };
}

/** Milliseconds of "500ms", "10s", "5m", "2h", "1d", "1h30m", or a bare number of `unit`; undefined for other text. */
export function readDuration(text: string, unit: "ms" | "s"): number | undefined {
  const trimmed = text.trim();
  if (!/^(?:\d+(?:\.\d+)?|(?:\d+(?:\.\d+)?\s*(?:ms|s|sec|m|min|h|d)\s*)+)$/.test(trimmed))
    return undefined;
  let sum = 0;
  for (const [, count, of = unit] of trimmed.matchAll(/(\d+(?:\.\d+)?)\s*([a-z]+)?/g))
    sum += Number(count) * (UNIT_MS[of] ?? Number.NaN);
  const ms = Math.round(sum);
  return Number.isSafeInteger(ms) ? ms : undefined;
}

const UNIT_MS: Readonly<Record<string, number>> = {
  ms: 1,
  s: 1000,
  sec: 1000,
  m: 60_000,
  min: 60_000,
  h: 3_600_000,
  d: 86_400_000,
};

/** Bytes of "500M", "2G", "2GiB" or a bare number; undefined for other text. */
function readSize(text: string): number | undefined {
  const match = /^(\d+(?:\.\d+)?)\s*(?:([KMGT])(?:i?B)?|B)?$/i.exec(text.trim());
  if (match === null) return undefined;
  const power = match[2] === undefined ? 0 : "KMGT".indexOf(match[2].toUpperCase()) + 1;
  const bytes = Math.round(Number(match[1]) * 1024 ** power);
  return Number.isSafeInteger(bytes) ? bytes : undefined;
}

function readValue(rawName: string, text: string, spec: OptionSpec): string | number {
  switch (spec.type) {
    case "number": {
      const value = /^[+-]?\d+$/.test(text) ? Number(text) : Number.NaN;
      const { min = Number.MIN_SAFE_INTEGER, max = Number.MAX_SAFE_INTEGER } = spec;
      if (Number.isSafeInteger(value) && value >= min && value <= max) return value;
      const range =
        spec.min === undefined
          ? ""
          : spec.max === undefined
            ? ` of at least ${min}`
            : ` from ${min} to ${max}`;
      throw new ErrUsage(`${rawName} wants a whole number${range}, found ${quote(text)}`);
    }
    case "duration": {
      const ms = readDuration(text, spec.unit);
      if (ms !== undefined) return ms;
      throw new ErrUsage(
        `${rawName} wants a time, found ${quote(text)}`,
        `for example 500ms, 10s, 5m, 2h; a bare number means ${spec.unit}`,
      );
    }
    case "size": {
      const bytes = readSize(text);
      if (bytes !== undefined) return bytes;
      throw new ErrUsage(
        `${rawName} wants a size, found ${quote(text)}`,
        "for example 500M, 2G; a bare number means bytes",
      );
    }
    case "text": {
      if (spec.choices === undefined || spec.choices.includes(text)) return text;
      const { orNumber } = spec;
      if (orNumber !== undefined && /^[+-]?\d+$/.test(text) && Math.abs(Number(text)) <= orNumber)
        return text;
      const near = suggest(text, spec.choices);
      const words = spec.choices.join(", ");
      const wanted =
        orNumber === undefined
          ? `one of ${words}`
          : `${words}, or a whole number from -${orNumber} to ${orNumber}`;
      throw new ErrUsage(
        `${rawName} wants ${wanted}, found ${quote(text)}`,
        near === undefined ? undefined : `did you mean "${near}"?`,
      );
    }
    default:
      return text;
  }
}

function nodeOptions(
  table: OptionTable,
): Record<string, { type: "string" | "boolean"; short?: string; multiple: true }> {
  return Object.fromEntries(
    Object.entries(table).map(([name, spec]) => [
      name,
      {
        type:
          spec.type === "flag" || spec.type === "toggle"
            ? ("boolean" as const)
            : ("string" as const),
        ...(spec.short === undefined ? {} : { short: spec.short }),
        multiple: true as const,
      },
    ]),
  );
}

function unknownOption(
  verb: string,
  rawName: string,
  table: OptionTable,
  before: readonly string[],
): ErrUsage {
  const names = Object.entries(table).flatMap(([name, spec]) =>
    spec.type === "toggle" ? [name, `no-${name}`] : [name],
  );
  const typed = rawName.replace(/^-+/, "");
  const meant = Object.entries(table).find(([, spec]) => spec.alsoCalled?.includes(typed));
  const near = meant?.[0] ?? flagOf(typed, table) ?? suggest(typed, names);
  const value = near === undefined ? "" : choicesText(table[near]);
  const hint =
    near !== undefined
      ? `did you mean --${near}${value === "" ? "" : ` ${value}`}?`
      : before.length > 0
        ? `what is meant for another program goes after --; see \`mailchute ${verb} --help\``
        : `see \`mailchute ${verb} --help\``;
  return new ErrUsage(`${verb} has no option ${rawName}`, hint);
}

/** The option that sets the task field of this name, or the one that is meant by it. */
function flagOf(typed: string, table: OptionTable): string | undefined {
  const name = typed.replaceAll("-", "_");
  const field = taskFields().has(name) ? name : fieldJudge().judgeName(name, "task")?.meant;
  const flag = taskFields().get(field ?? "")?.flag;
  return flag !== undefined && Object.hasOwn(table, flag) ? flag : undefined;
}

/** The text for the value of an option: its name in --help, or the allowed words. */
function valueText(spec: Exclude<OptionSpec, { type: "flag" | "toggle" }>): string {
  return choicesText(spec) || spec.value;
}

function choicesText(spec: OptionSpec | undefined): string {
  if (spec?.type !== "text" || spec.choices === undefined) return "";
  return [...spec.choices, ...(spec.orNumber === undefined ? [] : ["N"])].join("|");
}

function quote(text: string): string {
  return JSON.stringify(text);
}
