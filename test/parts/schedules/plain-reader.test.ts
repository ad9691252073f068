/** The times of random patterns against a plain reader of cron, which uses no library. */
import { expect, test } from "vitest";
import { ErrInvalidConfig } from "../../../src/core/errors.ts";
import { readSchedule, type Schedule } from "../../../src/parts/schedules/schedule.ts";
import { timesBetween } from "../../../src/parts/schedules/times.ts";
import { seededRandom } from "../../support/seeded-random.ts";
import { IS_WHOLE } from "../../support/walks.ts";

const schedule = (text: string): Schedule =>
  readSchedule("s", `${text}\ntask: {exec: ['true']}\n`, "schedules/s.yaml", "UTC");
const at = (text: string): number => Date.parse(`${text}Z`);

/** Reads a field of a pattern without any library. */
function valuesOf(field: string, min: number, max: number): Set<number> {
  const values = new Set<number>();
  for (const part of field.split(",")) {
    const [, range = "", step = "1"] = /^([^/]+)(?:\/(\d+))?$/.exec(part) ?? [];
    const [low, high] = range === "*" ? [min, max] : range.split("-").map(Number);
    for (let n = low ?? min; n <= (high ?? low ?? max); n += Number(step)) values.add(n);
  }
  return values;
}

const DAY_MS = 86_400_000;
/** `npm run test:schedule-kills` takes 200. */
const PATTERNS = IS_WHOLE ? 200 : 8;

test(`${PATTERNS} random patterns have the times that a plain reader finds minute by minute over 90 days`, () => {
  const seed = Number(process.env["MAILCHUTE_TEST_SEED"] ?? Math.floor(Math.random() * 2 ** 31));
  const random = seededRandom(seed);
  const pick = (n: number): number => Math.floor(random() * n);
  const field = (min: number, max: number): string => {
    const value = (): number => min + pick(max - min + 1);
    switch (pick(5)) {
      case 0:
        return `*/${1 + pick(max - min)}`;
      case 1:
        return String(value());
      case 2:
        return [...new Set([value(), value(), value()])].join(",");
      case 3: {
        const [a, b] = [value(), value()].sort((x, y) => x - y);
        return `${a}-${b}`;
      }
      default:
        return "*";
    }
  };
  const fromMs = at("2026-01-01T00:00:00");
  const toMs = fromMs + 90 * DAY_MS - 60_000;
  for (let n = 0; n < PATTERNS; n++) {
    const fields = [field(0, 59), field(0, 23), field(1, 31), field(1, 12), field(0, 6)];
    const cron = fields.join(" ");
    const [minutes, hours, days, months, weekdays] = [
      valuesOf(fields[0] ?? "", 0, 59),
      valuesOf(fields[1] ?? "", 0, 23),
      valuesOf(fields[2] ?? "", 1, 31),
      valuesOf(fields[3] ?? "", 1, 12),
      valuesOf(fields[4] ?? "", 0, 6),
    ];
    const isStar = (text = ""): boolean => text.startsWith("*");
    const expected: number[] = [];
    for (let dayMs = fromMs; dayMs <= toMs; dayMs += DAY_MS) {
      const date = new Date(dayMs);
      const isDay = days.has(date.getUTCDate());
      const isWeekday = weekdays.has(date.getUTCDay());
      const isEither = !isStar(fields[2]) && !isStar(fields[4]);
      const isIn = isEither ? isDay || isWeekday : isDay && isWeekday;
      if (!months.has(date.getUTCMonth() + 1) || !isIn) continue;
      for (let minute = 0; minute < 24 * 60; minute++)
        if (hours.has(Math.floor(minute / 60)) && minutes.has(minute % 60))
          expected.push(dayMs + minute * 60_000);
    }
    let one: Schedule;
    try {
      one = schedule(`cron: "${cron}"`);
    } catch (error) {
      // The 31st of a month that has none.
      expect(error, `${cron} (seed ${seed})`).toBeInstanceOf(ErrInvalidConfig);
      expect(expected).toEqual([]);
      continue;
    }
    const found = timesBetween(one, fromMs - 1, toMs, expected.length + 1).reverse();
    expect(found.length, `${cron} (seed ${seed})`).toBe(expected.length);
    expect(found, `${cron} (seed ${seed})`).toEqual(expected);
  }
});
