/**
 * The files of schedules. People write `schedules/<name>.yaml` or config.yaml. Only the supervisor writes
 * `schedules/.log/<name>.json`, which says what is decided. Only commands write `schedules/.log/<name>.control.json`, which says
 * what a person wants.
 */

import fs from "node:fs";
import { join } from "node:path";
import { ErrInvalidConfig, messageOf, systemCode } from "../../core/errors.ts";
import {
  having,
  isCount,
  isFlag,
  isNumber,
  isText,
  type Of,
  oneOf,
  optional,
  orElse,
  orNull,
  shape,
} from "../../core/shape.ts";
import { Documents } from "../../host/document-store.ts";
import { NAMED, readRegularText, statOf } from "../../host/regular-file.ts";
import { readSchedule, type Schedule } from "./schedule.ts";
import { schedulesDir } from "./schedules-dir.ts";
import { localZone } from "./times.ts";

const ENDING = ".yaml";

/** The decisions about a schedule so far. Times are epoch ms. */
const scheduleLog = shape({
  v: orElse(oneOf(1), 1),
  /** All times up to this one are decided. */
  decided_to_ms: isNumber,
  /** `timesDigest` of the schedule when that was decided. */
  times: isText,
  /** The last time that fired; null before the first. */
  last: orElse(orNull(having({ nominal_ms: isNumber, id: isText })), null),
  fired: orElse(isNumber, 0),
  skipped: orElse(isNumber, 0),
  /** The last reason for skipping, when an event last said so, and how many times were skipped since. Left out after one fired. */
  untold: optional(having({ reason: isText, told_ms: isNumber, count: isCount })),
});
export type ScheduleLog = Of<typeof scheduleLog>;

/** What a person wants. */
const scheduleControl = shape({
  v: orElse(oneOf(1), 1),
  paused: orElse(isFlag, false),
  /** When it was last resumed (epoch ms). Times before that do not fire any more. */
  at_ms: orElse(isNumber, 0),
  /** The last task that was started by hand. */
  manual_id: orElse(orNull(isText), null),
});
export type ScheduleControl = Of<typeof scheduleControl>;

const FOLDER = join("schedules", ".log");
/** Survives a power cut, because a forgotten time could fire again once its submit note is removed. */
const logs = (stateDir: string): Documents<ScheduleLog> =>
  new Documents(stateDir, FOLDER, scheduleLog, { isDurable: true });
const controls = (stateDir: string): Documents<ScheduleControl> =>
  new Documents(stateDir, FOLDER, scheduleControl, { isDurable: true });

export interface ScheduleFile {
  name: string;
  schedule: Schedule | undefined;
  /** Why the file cannot be used. */
  error: ErrInvalidConfig | undefined;
}

export function scheduleFileOf(stateDir: string, name: string): string {
  return join(schedulesDir(stateDir), `${name}${ENDING}`);
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
export const readLog = (stateDir: string, name: string): ScheduleLog | undefined =>
  logs(stateDir).load(name);

/** @throws a system error */
export const writeLog = (stateDir: string, name: string, log: ScheduleLog): void =>
  logs(stateDir).replace(name, log);

/** @throws a system error; then it is not known whether the schedule is paused */
export const readControl = (stateDir: string, name: string): ScheduleControl =>
  controls(stateDir).load(`${name}.control`) ?? (scheduleControl({}) as ScheduleControl);

/** @throws a system error */
export const writeControl = (stateDir: string, name: string, control: ScheduleControl): void =>
  controls(stateDir).replace(`${name}.control`, control);

/** Changes whenever a file of the schedule changes. */
export function stampOf(stateDir: string, name: string): string {
  return [scheduleFileOf(stateDir, name), controls(stateDir).path(`${name}.control`)]
    .map((path) => {
      const stats = statOf(path);
      return `${stats?.ino} ${stats?.mtimeMs} ${stats?.size}`;
    })
    .join(" ");
}
