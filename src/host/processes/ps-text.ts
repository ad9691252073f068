/**
 * Parses the output of `ps`, on macOS and on Linux. A text that it does not understand is an error, never an empty list: otherwise live
 * processes would count as dead.
 */
import type { ProcessRow } from "./process-source.ts";

/** A process cannot put its own text into any of these columns. `lstart` must be in UTC and in English. */
export const TABLE_COLUMNS = "pid=,ppid=,pgid=,stat=,lstart=";
/** The command comes last, because it may be of any length. */
export const COMMAND_COLUMNS = "pid=,command=";

const ROW =
  /^\s*(\d+)\s+(\d+)\s+(\d+)\s+(\S+)\s+[A-Z][a-z]{2} ([A-Z][a-z]{2}) ([ \d]\d) (\d\d):(\d\d):(\d\d) (\d{4})\s*$/;
const MONTHS = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split(" ");
const SHOWN_LENGTH_MAX = 80;

/** @returns all processes but zombies, with start times in seconds since 1970 @throws Error for a text that it does not understand */
export function parseTable(text: string): ProcessRow[] {
  const rows: ProcessRow[] = [];
  for (const line of text.split("\n")) {
    if (line === "") continue;
    const [, pid, parent, group, state = "", month = "", ...date] = ROW.exec(line) ?? [];
    const startTicks = secondsOf(month, date);
    if (Number.isNaN(startTicks))
      throw new Error(`ps printed ${JSON.stringify(line.slice(0, SHOWN_LENGTH_MAX))}`);
    if (state.startsWith("Z")) continue;
    rows.push({
      pid: Number(pid),
      parent: Number(parent),
      group: Number(group),
      // Not every `ps` prints these two in the same way.
      session: 0,
      threads: 0,
      startTicks,
    });
  }
  return rows;
}

function secondsOf(month: string, date: readonly string[]): number {
  const [day, hour, minute, second, year] = date.map(Number);
  const at = MONTHS.indexOf(month);
  if (at === -1 || year === undefined) return Number.NaN;
  return Date.UTC(year, at, day, hour, minute, second) / 1000;
}

/**
 * The command of each process, with its variables where `ps` was asked for them. A process may put any text there, even one that looks
 * like the line of another process. So a pid with two lines is left out.
 */
export function parseCommands(text: string): Map<number, string> {
  const commands = new Map<number, string>();
  const doubtful = new Set<number>();
  for (const line of text.split("\n")) {
    const [, digits, command] = /^\s*(\d+) (.*)$/.exec(line) ?? [];
    if (digits === undefined || command === undefined) continue;
    const pid = Number(digits);
    if (commands.has(pid)) doubtful.add(pid);
    commands.set(pid, command);
  }
  for (const pid of doubtful) commands.delete(pid);
  return commands;
}

/**
 * The variables of a process as `/proc` shows them, each with a NUL after it. `ps` prints a space between two variables, but a value may
 * hold spaces, too. So a text after a space that looks like a variable counts as one.
 * @param full the command with its variables
 * @param command the same without them, so that no argument is taken for a variable
 * @returns undefined when the two do not match: the process has become another program in between
 */
export function variablesIn(full: string, command: string): string | undefined {
  if (!full.startsWith(command)) return undefined;
  const rest = full.slice(command.length);
  if (rest.trim() === "") return "";
  if (!rest.startsWith(" ")) return undefined;
  const variables = rest.slice(1).split(/ (?=[A-Za-z_][A-Za-z0-9_]*=)/);
  return variables.map((variable) => `${variable}\0`).join("");
}
