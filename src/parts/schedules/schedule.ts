/** Reads a schedule from the text of `schedules/<name>.yaml` or from its value in config.yaml. Pure. */
import { createHash } from "node:crypto";
import { LineCounter } from "yaml";
import { readDuration } from "../../cli/shell/parse.ts";
import { checkTask } from "../../codec/task-codec.ts";
import { parseYaml } from "../../codec/yaml.ts";
import { findRepeatedKeys } from "../../codec/yaml-keys.ts";
import { ErrInvalidConfig, messageOf } from "../../core/errors.ts";
import { isObject } from "../../core/json-object.ts";
import { isId } from "../../core/names.ts";
import { suggest } from "../../core/suggest.ts";
import { fieldJudge, fieldsIn } from "../../core/task-fields.ts";
import { firingId } from "./firing.ts";
import { findNever, instantOf, isZone, type Rhythm } from "./times.ts";

export const MISSED = ["one", "all", "none"] as const;
export const OVERLAP = ["skip", "wait", "replace", "allow"] as const;

export interface Schedule extends Rhythm {
  name: string;
  /** Which times fire late when no supervisor ran at them: the newest one, all or none. */
  missed: (typeof MISSED)[number];
  /** With `all`: the most that fire late. None fires that is older than `missedWithinMs`. */
  missedMax: number;
  missedWithinMs: number;
  /** A time is missed only when it is later than this (ms). */
  graceMs: number;
  /** What happens at a time when the task of an earlier time has not ended. */
  overlap: (typeof OVERLAP)[number];
  isPaused: boolean;
  /** Each task starts up to this much later (ms). */
  jitterMs: number;
  /** True if its tasks reset the plan. Then an earlier time counts as unfinished while the plan is at work. */
  isOfPlan: boolean;
  /** The fields of its tasks. */
  task: Readonly<Record<string, unknown>>;
  /** A sentence for each field of its tasks that has no effect. */
  warnings: readonly string[];
  /** Changes when its times change. */
  timesDigest: string;
}

export const NAME_CHARS_MAX = 64;
const EVERY_MS_MIN = 1000;
const FIELDS = fieldsIn("schedule");
const ALIASES_MAX = 100;
const DAY_MS = 86_400_000;

/**
 * @param given the text of a file, or the value under its name in config.yaml
 * @param path the file that errors name
 * @param localZone the time zone of a schedule that names none
 * @throws ErrInvalidConfig
 */
export function readSchedule(
  name: string,
  given: string | { value: unknown },
  path: string,
  localZone: string,
): Schedule {
  const fail = (message: string, hint = "see docs/schedules.md"): never => {
    throw new ErrInvalidConfig(message, { path, phase: "schedules", hint });
  };
  if (name.length > NAME_CHARS_MAX || !isId(name))
    fail(
      `${JSON.stringify(name)} is no name of a schedule`,
      `at most ${NAME_CHARS_MAX} characters of an id`,
    );
  const values = fieldsOf(typeof given === "string" ? parse(given, fail) : given.value, fail);
  const read = new Reader(values, fail);
  const timezone = read.text("timezone") ?? localZone;
  if (!isZone(timezone))
    fail(`timezone: ${JSON.stringify(timezone)} is not known`, "for example Europe/Berlin or UTC");
  const instant = (field: string): number | undefined => {
    const value = read.text(field);
    return value === undefined
      ? undefined
      : (instantOf(value, timezone) ??
          fail(`${field}: ${JSON.stringify(value)} is no time`, "for example 2026-12-24T18:00:00"));
  };
  const rhythm = readRhythm(read, timezone, instant, fail);
  const never = findNever(rhythm);
  if (never !== undefined) fail(never);
  const isOfPlan = read.has("roadmap");
  if (isOfPlan && read.has("task")) fail("task and roadmap exclude each other");
  const task = isOfPlan ? readReset(values["roadmap"], fail) : values["task"];
  if (!isObject(task))
    return fail("task: what is to run is missing", "for example task: {exec: [./backup.sh]}");
  for (const own of ["id", "created_at", "not_before"])
    if (own in task)
      fail(`task.${own}: each task gets its own from the schedule`, `leave ${own} out`);
  try {
    checkTask(structuredClone(task), firingId(name, 0));
  } catch (error) {
    fail(`task: ${messageOf(error)}`, "see mailchute schema task");
  }
  const overlap = read.word("overlap", OVERLAP) ?? "skip";
  if (isOfPlan && (overlap === "replace" || overlap === "allow"))
    fail(`overlap: a running plan cannot be reset, so roadmap does not allow ${overlap}`);
  return {
    name,
    ...rhythm,
    missed: read.word("missed", MISSED) ?? "one",
    missedMax: read.count("missed_max", 1, 1000) ?? 100,
    missedWithinMs: read.duration("missed_within") ?? 7 * DAY_MS,
    graceMs: read.duration("grace") ?? 60_000,
    overlap,
    isPaused: read.flag("paused") ?? false,
    jitterMs: read.duration("jitter") ?? 0,
    isOfPlan,
    task,
    warnings: fieldJudge()
      .judge(task, "task")
      .map(({ why }) => `task: ${why}`),
    timesDigest: createHash("sha256").update(JSON.stringify(rhythm)).digest("hex").slice(0, 16),
  };
}

/** The task for `roadmap: reset`, `roadmap: {reset: failed}` or `{reset: [NODE…], downstream: true}`. */
function readReset(value: unknown, fail: Fail): Record<string, unknown> {
  const hint = "roadmap: reset, or {reset: all | failed | [NODE…], downstream: true}";
  const given = typeof value === "string" ? { [value]: "all" } : value;
  if (!isObject(given) || Object.keys(given).some((key) => key !== "reset" && key !== "downstream"))
    return fail("roadmap: it does not say what to reset", hint);
  const { reset, downstream = false } = given;
  const isList = Array.isArray(reset) && reset.length > 0 && reset.every((one) => isId(one));
  if ((reset !== "all" && reset !== "failed" && !isList) || typeof downstream !== "boolean")
    return fail("roadmap: it does not say what to reset", hint);
  const nodes = isList ? (reset as string[]) : [];
  return {
    exec: [
      "mailchute",
      "roadmap",
      "reset",
      ...nodes,
      ...(reset === "failed" ? ["--failed"] : []),
      ...(downstream ? ["--downstream"] : []),
    ],
    metadata: {
      roadmap_reset: { ...(isList ? { nodes } : {}), failed: reset === "failed", downstream },
    },
  };
}

type Fail = (message: string, hint?: string) => never;

function readRhythm(
  read: Reader,
  timezone: string,
  instant: (field: string) => number | undefined,
  fail: Fail,
): Rhythm {
  const given = ["cron", "every", "at"].filter((field) => read.has(field));
  if (given.length !== 1)
    fail(
      given.length === 0
        ? "none of cron, every and at is given"
        : `${given.join(" and ")} exclude each other`,
      "give one of them: cron: '30 2 * * 1-5', every: 15m, at: 2026-12-24T18:00:00",
    );
  const startMs = instant("start") ?? 0;
  const endMs = instant("end") ?? Number.MAX_SAFE_INTEGER;
  if (endMs < startMs) fail("end is before start");
  const span = { timezone, startMs, endMs };
  const cron = read.text("cron");
  if (cron !== undefined) return { cron, ...span };
  const everyMs = read.duration("every");
  if (everyMs !== undefined) {
    if (everyMs < EVERY_MS_MIN) fail("every: it is shorter than a second");
    return { everyMs, ...span };
  }
  const atMs = read
    .texts("at")
    .map(
      (value) =>
        instantOf(value, timezone) ??
        fail(`at: ${JSON.stringify(value)} is no time`, "for example 2026-12-24T18:00:00"),
    );
  return { atMs: [...new Set(atMs)].sort((a, b) => a - b), ...span };
}

function parse(text: string, fail: Fail): unknown {
  const lines = new LineCounter();
  const doc = parseYaml(text, { lineCounter: lines });
  const where = (offset: number): string => {
    const { line, col } = lines.linePos(offset);
    return `line ${line}, column ${col}`;
  };
  const broken = doc.errors[0] ?? doc.warnings[0];
  if (broken !== undefined) fail(`${where(broken.pos[0])}: ${broken.message}`, "mend the YAML");
  for (const at of findRepeatedKeys(doc.contents)) fail(`${where(at)}: map keys must be unique`);
  try {
    return JSON.parse(JSON.stringify(doc.toJS({ maxAliasCount: ALIASES_MAX }) ?? null));
  } catch (error) {
    return fail(messageOf(error).split("\n")[0] ?? "", "write values out instead of using aliases");
  }
}

function fieldsOf(values: unknown, fail: Fail): Record<string, unknown> {
  if (!isObject(values)) return fail("it is no map of fields");
  // `$schema` is for editors.
  const { $schema: _, ...own } = values;
  const unknown = Object.keys(own).find((field) => !FIELDS.includes(field));
  if (unknown !== undefined) {
    const notice = fieldJudge().judgeName(unknown, "schedule");
    const isOfTask = fieldsIn("task").includes(unknown);
    const near = notice?.meant ?? suggest(unknown, FIELDS);
    const hint =
      near === undefined ? `the fields are ${FIELDS.join(", ")}` : `did you mean ${near}?`;
    fail(
      `${JSON.stringify(unknown)} is no field of a schedule`,
      isOfTask ? `it is a field of its task: write it under task` : hint,
    );
  }
  return values;
}

/** Reads the fields of the file, and refuses one of the wrong type. */
class Reader {
  constructor(
    private readonly values: Readonly<Record<string, unknown>>,
    private readonly fail: Fail,
  ) {}

  has(field: string): boolean {
    return this.values[field] !== undefined && this.values[field] !== null;
  }

  text(field: string): string | undefined {
    if (!this.has(field)) return undefined;
    const value = this.values[field];
    return typeof value === "string"
      ? value
      : this.fail(`${field}: it is no text`, "put it in quotes");
  }

  texts(field: string): string[] {
    const value = this.values[field];
    const list = Array.isArray(value) ? value : [value];
    if (list.length === 0 || !list.every((one) => typeof one === "string"))
      return this.fail(`${field}: it is no text, and no list of texts`, "put each in quotes");
    return list as string[];
  }

  duration(field: string): number | undefined {
    if (!this.has(field)) return undefined;
    const value = this.values[field];
    const ms =
      typeof value === "string" || typeof value === "number"
        ? readDuration(String(value), "s")
        : undefined;
    return (
      ms ??
      this.fail(`${field}: ${JSON.stringify(value)} is no time`, "for example 30s, 15m, 2h, 7d")
    );
  }

  word<W extends string>(field: string, words: readonly W[]): W | undefined {
    const value = this.text(field);
    if (value === undefined) return undefined;
    return (
      words.find((word) => word === value) ??
      this.fail(`${field}: ${JSON.stringify(value)} is none of ${words.join(", ")}`)
    );
  }

  count(field: string, min: number, max: number): number | undefined {
    if (!this.has(field)) return undefined;
    const value = this.values[field];
    const isGood = Number.isInteger(value) && (value as number) >= min && (value as number) <= max;
    return isGood
      ? (value as number)
      : this.fail(`${field}: it is no number from ${min} to ${max}`);
  }

  flag(field: string): boolean | undefined {
    if (!this.has(field)) return undefined;
    const value = this.values[field];
    return typeof value === "boolean" ? value : this.fail(`${field}: it is neither true nor false`);
  }
}
