/**
 * The files of schedules. People write `schedules/<name>.yaml` or config.yaml. Only the supervisor writes
 * `schedules/.log/<name>.json`, which says what is decided. Only commands write `schedules/.log/<name>.control.json`, which says
 * what a person wants.
 */
import fs from "node:fs";
import { join } from "node:path";
import { ErrInvalidConfig, messageOf, systemCode } from "../../core/errors.ts";
import { isObject } from "../../core/json-object.ts";
import { loadDocument, replaceInTree } from "../../host/documents.ts";
import { NAMED, readRegularText, statOf } from "../../host/regular-file.ts";
import { readSchedule, type Schedule } from "./schedule.ts";
import { schedulesDir } from "./schedules-dir.ts";
import { localZone } from "./times.ts";

const ENDING = ".yaml";

/** The decisions about a schedule so far. Times are epoch ms. */
export interface ScheduleLog {
  v: 1;
  /** All times up to this one are decided. */
  decided_to_ms: number;
  /** `timesDigest` of the schedule when that was decided. */
  times: string;
  /** The last time that fired; null before the first. */
  last: { nominal_ms: number; id: string } | null;
  fired: number;
  skipped: number;
  /** The last reason for skipping, when an event last said so, and how many times were skipped since. Left out after one fired. */
  untold?: { reason: string; told_ms: number; count: number };
}

/** What a person wants. */
export interface ScheduleControl {
  v: 1;
  paused: boolean;
  /** When it was last resumed (epoch ms). Times before that do not fire any more. */
  at_ms: number;
  /** The last task that was started by hand. */
  manual_id: string | null;
}

export interface ScheduleFile {
  name: string;
  schedule: Schedule | undefined;
  /** Why the file cannot be used. */
  error: ErrInvalidConfig | undefined;
}

export function scheduleFileOf(stateDir: string, name: string): string {
  return join(schedulesDir(stateDir), `${name}${ENDING}`);
}

function logFileOf(stateDir: string, name: string, what: "" | ".control"): string {
  return join(schedulesDir(stateDir), ".log", `${name}${what}.json`);
}

/** Where people write schedules. */
export interface ScheduleSource {
  stateDir: string;
  /** The schedules in config.yaml, by name. */
  given: Readonly<Record<string, unknown>>;
}

/** Names of schedules, sorted. @throws a system error */
export function scheduleNames({ stateDir, given }: ScheduleSource): string[] {
  return [...new Set([...namesOfFiles(stateDir), ...Object.keys(given)])].sort();
}

/** Empty when the folder is missing. */
function namesOfFiles(stateDir: string): string[] {
  try {
    return fs
      .readdirSync(schedulesDir(stateDir))
      .filter((file) => file.endsWith(ENDING) && !file.startsWith("."))
      .map((file) => file.slice(0, -ENDING.length));
  } catch (error) {
    if (systemCode(error) === "ENOENT") return [];
    throw error;
  }
}

/** Where the schedule is written, for people. */
export function placeOf({ given }: Pick<ScheduleSource, "given">, name: string): string {
  return Object.hasOwn(given, name) ? `config.yaml, schedules.${name}` : `schedules/${name}.yaml`;
}

/** The path of the file that has the schedule. */
export function pathOf({ stateDir, given }: ScheduleSource, name: string): string {
  return Object.hasOwn(given, name)
    ? join(stateDir, "config.yaml")
    : scheduleFileOf(stateDir, name);
}

export function loadSchedule(source: ScheduleSource, name: string): ScheduleFile {
  const path = pathOf(source, name);
  try {
    const schedule = readSchedule(name, read(source, name), path, localZone());
    return { name, schedule, error: undefined };
  } catch (error) {
    const known =
      error instanceof ErrInvalidConfig
        ? error
        : new ErrInvalidConfig(`it cannot be read: ${messageOf(error)}`, {
            path,
            phase: "schedules",
            cause: error,
          });
    return { name, schedule: undefined, error: known };
  }
}

/** @throws ErrInvalidConfig when the schedule is in both places; a system error */
function read(source: ScheduleSource, name: string): string | { value: unknown } {
  const { stateDir, given } = source;
  const file = scheduleFileOf(stateDir, name);
  if (!Object.hasOwn(given, name)) return readRegularText(file, NAMED);
  if (statOf(file) !== undefined)
    throw new ErrInvalidConfig(`schedules/${name}.yaml is a schedule of this name, too`, {
      path: pathOf(source, name),
      phase: "schedules",
      hint: `remove that file, or schedules.${name} in config.yaml`,
    });
  return { value: given[name] };
}

/** Undefined before the first decision, and when the file is damaged. @throws a system error; then the decisions are not known */
export function readLog(stateDir: string, name: string): ScheduleLog | undefined {
  const log = loadDocument<ScheduleLog>(logFileOf(stateDir, name, ""));
  const isGood =
    log !== undefined && Number.isFinite(log.decided_to_ms) && typeof log.times === "string";
  if (!isGood) return undefined;
  const last = isObject(log.last) && typeof log.last.id === "string" ? log.last : null;
  const counts = { fired: Number(log.fired) || 0, skipped: Number(log.skipped) || 0 };
  const { untold, ...rest } = log;
  const isTold = isObject(untold) && typeof untold.reason === "string";
  const isCounted = isTold && Number.isFinite(untold.told_ms) && Number.isSafeInteger(untold.count);
  return { ...rest, last, ...counts, ...(isCounted && { untold }) };
}

/** Survives a power cut, because a forgotten time could fire again once its submit note is removed. @throws a system error */
export function writeLog(stateDir: string, name: string, log: ScheduleLog): void {
  replaceInTree(stateDir, logFileOf(stateDir, name, ""), log, { isDurable: true });
}

/** @throws a system error; then it is not known whether the schedule is paused */
export function readControl(stateDir: string, name: string): ScheduleControl {
  const found = loadDocument<ScheduleControl>(logFileOf(stateDir, name, ".control"));
  return {
    v: 1,
    paused: found?.paused === true,
    at_ms: Number.isFinite(found?.at_ms) ? (found?.at_ms as number) : 0,
    manual_id: typeof found?.manual_id === "string" ? found.manual_id : null,
  };
}

/** @throws a system error */
export function writeControl(stateDir: string, name: string, control: ScheduleControl): void {
  replaceInTree(stateDir, logFileOf(stateDir, name, ".control"), control, { isDurable: true });
}

/** Changes whenever a file of the schedule changes. */
export function stampOf(stateDir: string, name: string): string {
  return [scheduleFileOf(stateDir, name), logFileOf(stateDir, name, ".control")]
    .map((path) => {
      const stats = statOf(path);
      return `${stats?.ino} ${stats?.mtimeMs} ${stats?.size}`;
    })
    .join(" ");
}
