/**
 * 200 expressions, each time of theirs, beside the real cron of Debian: over both changes of daylight saving in three zones, a leap day,
 * the turn of a year, and 14 months: `npm run test:cron`. MAILCHUTE_CRON_SEED=n chooses other expressions.
 */
import { afterAll, describe, expect, test } from "vitest";
import { readSchedule, type Schedule } from "../../../src/parts/schedules/schedule.ts";
import { timesAfter, timesBetween } from "../../../src/parts/schedules/times.ts";
import { seededRandom } from "../../support/seeded-random.ts";
import { tempDir } from "../../support/temp-dir.ts";
import { RealCron, type Span } from "./debian/real-cron.ts";

const COUNT = 200;
const random = seededRandom(Number(process.env["MAILCHUTE_CRON_SEED"] ?? 1));
const DAY_MS = 86_400_000;
const at = (text: string): number => Date.parse(`${text}Z`);

/** What has its own rule, in cron or here. */
const CHOSEN = `
  * * * * * | */7 * * * * | 0 * * * * | 59 * * * * | 0-59 * * * * | */30 * * * * | 30 2 * * * | 0 2 * * *
  0 3 * * * | 59 1 * * * | 1 3 * * * | 15,45 2 * * * | */30 2 * * * | 0-59/10 2 * * * | 30 * * * 0 | 30 1 * * *
  30 1,2,3 * * * | 15 */2 * * * | 45 1-3 * * * | */20 1-3 * * * | 0 0-23 * * * | 30 0-23/2 * * * | * 2 * * *
  0 0 * * * | 0 0 29 2 * | 0 0 31 * * | 0 0 30 2,4 * | 0 0 31 12 * | 59 23 31 12 * | 0 0 1 1 * | 0 0 13 * 5
  0 0 1,15 * 3 | 0 0 */2 * 1 | 0 0 1-31 * 1 | 0 0 1 * */2 | 0 0 */3 * */2 | 0 0 * * 7 | 0 0 * * 0 | 0 0 * * 5-7
  0 0 * * 0-7/2 | 0 0 * * sun | 0 0 * * MON-wed | 0 0 1 jan-mar * | 0 0 1 Jan,dec * | 0 0 10 * *,1
  0 0 1,*/10 * 3 | 0 0 */10,1 * 3 | 1,2,5-9/2 4 * * * | 10-50/20 */5 * * * | 00 02 * * 1,1 | @hourly | @daily
  @midnight | @weekly | @monthly | @yearly | @annually
`;

/** A field with a list of values, ranges and steps. */
function field(from: number, to: number, most: number): string {
  const one = (): string => {
    const low = from + random.below(to - from + 1);
    if (random.below(3) > 0) return String(low);
    const high = low + random.below(to - low + 1);
    return `${low}-${high}${random.below(2) === 0 ? "" : `/${1 + random.below(5)}`}`;
  };
  return Array.from({ length: 1 + random.below(most) }, one).join(",");
}

function rarely(from: number, to: number): string {
  const which = random.below(6);
  return which > 1 ? "*" : which === 1 ? `*/${2 + random.below(5)}` : field(from, to, 2);
}

/** The hours are mostly those in which clocks change. */
function anyExpression(): string {
  const hours = [field(0, 23, 2), field(0, 4, 2), "2", "1", "3", "*/3", "*"];
  const minutes = [field(0, 59, 3), field(0, 59, 1), "*/15", "0", "30"];
  const days = `${rarely(1, 31)} ${rarely(1, 12)} ${rarely(0, 7)}`;
  return `${random.pick(minutes)} ${random.pick(hours)} ${days}`;
}

const EXPRESSIONS = [...new Set(CHOSEN.trim().split(/ \| |\n\s+/))];
while (EXPRESSIONS.length < COUNT) {
  const one = anyExpression();
  if (!EXPRESSIONS.includes(one)) EXPRESSIONS.push(one);
}

interface Case extends Span {
  /** When clocks are set forward. */
  gapMs?: number;
}

const around = (zone: string, day: string, days = 1, gap?: string): [string, Case] => [
  `${zone} ${day}`,
  {
    zone,
    fromMs: at(`${day}T00:00`) - days * DAY_MS,
    toMs: at(`${day}T00:00`) + (days + 1) * DAY_MS,
    ...(gap === undefined ? {} : { gapMs: at(gap) }),
  },
];
const SPANS = [
  around("Europe/Berlin", "2026-03-29", 1, "2026-03-29T01:00"),
  around("Europe/Berlin", "2026-10-25"),
  around("America/New_York", "2026-03-08", 1, "2026-03-08T07:00"),
  around("America/New_York", "2026-11-01"),
  around("Australia/Lord_Howe", "2026-04-05"),
  around("Australia/Lord_Howe", "2026-10-04", 1, "2026-10-03T15:30"),
  around("UTC", "2028-02-29", 2),
  around("Asia/Kolkata", "2026-12-31", 2),
];
/** After a gap cron catches up: six minutes of the clock each minute. Here all of them are at once. */
const CATCH_UP_MS = 12 * 60_000;

const MONTHS_14: Span = {
  zone: "Europe/Berlin",
  fromMs: at("2027-12-15T00:00"),
  toMs: at("2029-02-15T00:00"),
};
/** Of the long span only these: it is about days and months. */
const RARE = EXPRESSIONS.filter((one) => /^\d+ \d+ |^@(?!hourly)/.test(one));

const cron = new RealCron(tempDir(afterAll));
const reason = cron.prepare();
if (reason !== undefined) process.stderr.write(`\nSKIPPED: ${reason}\n`);

const scheduleOf = (expression: string, { zone }: Span): Schedule =>
  readSchedule(
    "s",
    `cron: "${expression}"\ntimezone: ${zone}\ntask: {exec: ['true']}\n`,
    "schedules/s.yaml",
    zone,
  );
const shown = (times: readonly number[]): string[] =>
  times.map((ms) => new Date(ms).toISOString().slice(0, 16));

/** What cron makes up after the gap counts as its first moment; what has a star in the minute or hour is not made up. */
function caughtUp(times: readonly number[], expression: string, { gapMs }: Case): number[] {
  if (gapMs === undefined || /^(\*|\S+ \*|@hourly)/.test(expression)) return [...times];
  const isLate = (ms: number): boolean => ms > gapMs && ms < gapMs + CATCH_UP_MS;
  return [...new Set(times.map((ms) => (isLate(ms) ? gapMs : ms)))];
}

/** @returns how many times were compared */
function compare(expressions: readonly string[], span: Case): number {
  const { times, fault } = cron.start(expressions, span);
  expect(fault).toBeUndefined();
  let compared = 0;
  const others: string[] = [];
  for (const [n, expression] of expressions.entries()) {
    const started = times[n] ?? [];
    const theirs = shown(caughtUp(started, expression, span));
    const schedule = scheduleOf(expression, span);
    // Those that cron has made up are fewer here.
    const most = started.length + 1;
    const back = timesBetween(schedule, span.fromMs, span.toMs - 1, most).reverse();
    const ahead = timesAfter(schedule, span.fromMs, most).filter((ms) => ms < span.toMs);
    for (const ours of [back, ahead])
      if (shown(caughtUp(ours, expression, span)).join(" ") !== theirs.join(" "))
        others.push(`${expression}: ${shown(ours).join(" ")}; cron: ${theirs.join(" ")}`);
    compared += theirs.length;
  }
  expect(others).toEqual([]);
  return compared;
}

describe.skipIf(reason !== undefined)("the real cron of Debian starts a job at", () => {
  test.each(SPANS)("the same times: %s", (_, span) => {
    expect(compare(EXPRESSIONS, span)).toBeGreaterThan(10_000);
  });

  test("the same days of 14 months, with a leap day in them", () => {
    expect(compare(RARE, MONTHS_14)).toBeGreaterThan(3000);
  });
});
