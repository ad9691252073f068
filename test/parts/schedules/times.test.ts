/** The times of schedules: daylight saving in three zones, month ends, and what is refused. */
import { expect, test } from "vitest";
import { readSchedule, type Schedule } from "../../../src/parts/schedules/schedule.ts";
import { instantOf, timesAfter, timesBetween } from "../../../src/parts/schedules/times.ts";

const TASK = "task: {exec: ['true']}";
const schedule = (text: string, zone = "UTC"): Schedule =>
  readSchedule("s", `${text}\n${TASK}\n`, "schedules/s.yaml", zone);
const iso = (ms: number): string => new Date(ms).toISOString().slice(0, 19);
const at = (text: string): number => Date.parse(`${text}Z`);
const all = (one: Schedule, from: string, to: string): string[] =>
  timesBetween(one, at(from), at(to), 1000).reverse().map(iso);

test("a fixed time in the gap of spring runs at the first moment after it, in the hour that comes twice only once", () => {
  const cases = [
    [
      "Europe/Berlin",
      "30 2 * * *",
      "2026-03-28T12:00:00",
      "2026-03-30T12:00:00",
      ["2026-03-29T01:00:00", "2026-03-30T00:30:00"],
    ],
    [
      "Europe/Berlin",
      "30 2 * * *",
      "2026-10-24T12:00:00",
      "2026-10-26T12:00:00",
      ["2026-10-25T00:30:00", "2026-10-26T01:30:00"],
    ],
    [
      "America/New_York",
      "30 2 * * *",
      "2026-03-07T12:00:00",
      "2026-03-09T12:00:00",
      ["2026-03-08T07:00:00", "2026-03-09T06:30:00"],
    ],
    [
      "America/New_York",
      "30 1 * * *",
      "2026-10-31T12:00:00",
      "2026-11-02T12:00:00",
      ["2026-11-01T05:30:00", "2026-11-02T06:30:00"],
    ],
    [
      "Australia/Lord_Howe",
      "15 2 * * *",
      "2026-10-02T16:00:00",
      "2026-10-04T16:00:00",
      ["2026-10-03T15:30:00", "2026-10-04T15:15:00"],
    ],
    [
      "Australia/Lord_Howe",
      "45 1 * * *",
      "2026-04-03T16:00:00",
      "2026-04-05T16:00:00",
      ["2026-04-04T14:45:00", "2026-04-05T15:15:00"],
    ],
  ] as const;
  for (const [zone, cron, from, to, expected] of cases) {
    const one = schedule(`cron: "${cron}"\ntimezone: ${zone}`);
    const found = all(one, from, to);
    expect(found.slice(-2), `${zone} ${cron}`).toEqual(expected);
    const ahead = timesAfter(one, at(from), found.length).map(iso);
    expect(ahead, `${zone} ${cron}, forwards`).toEqual(found);
  }
});

test("lists and ranges are fixed times too, as the real cron has it", () => {
  const cases = [
    ["Europe/Berlin", "15,45 2 * * *", "2026-03-29T00", "2026-03-29T06", ["01:00"]],
    [
      "Europe/Berlin",
      "30 1,2,3 * * *",
      "2026-03-29T00",
      "2026-03-29T06",
      ["00:30", "01:00", "01:30"],
    ],
    [
      "Europe/Berlin",
      "0-59/20 2-3 * * *",
      "2026-03-29T00",
      "2026-03-29T06",
      ["01:00", "01:20", "01:40"],
    ],
    [
      "Europe/Berlin",
      "*/20 2-3 * * *",
      "2026-03-29T00",
      "2026-03-29T06",
      ["01:00", "01:20", "01:40"],
    ],
    ["Europe/Berlin", "15,45 2 * * *", "2026-10-24T23", "2026-10-25T06", ["00:15", "00:45"]],
    [
      "Europe/Berlin",
      "45 1-3 * * *",
      "2026-10-24T23",
      "2026-10-25T06",
      ["23:45", "00:45", "02:45"],
    ],
    [
      "Europe/Berlin",
      "*/30 2 * * *",
      "2026-10-24T23",
      "2026-10-25T06",
      ["00:00", "00:30", "01:00", "01:30"],
    ],
    ["Australia/Lord_Howe", "45,59 1 * * *", "2026-04-04T14", "2026-04-04T20", ["14:45", "14:59"]],
    ["Australia/Lord_Howe", "10,20 2 * * *", "2026-10-03T14", "2026-10-03T20", ["15:30"]],
  ] as const;
  for (const [zone, cron, from, to, expected] of cases) {
    const one = schedule(`cron: "${cron}"\ntimezone: ${zone}`);
    const [fromText, toText] = [`${from}:00:00`, `${to}:00:00`];
    const times = (found: readonly string[]): string[] => found.map((text) => text.slice(11, 16));
    expect(times(all(one, fromText, toText)), `${zone} ${cron}`).toEqual(expected);
    const ahead = timesAfter(one, at(fromText), expected.length).map(iso);
    expect(times(ahead), `${zone} ${cron}, forwards`).toEqual(expected);
  }
  const one = schedule('cron: "30 1,2,3 * * *"\ntimezone: Europe/Berlin');
  // One at a time, each way, and from each moment of the hour that comes twice.
  const found: number[] = [];
  for (let ms = at("2026-10-24T00:00:00"); found.length < 9; ms = found.at(-1) ?? 0)
    found.push(timesAfter(one, ms, 1)[0] ?? 0);
  expect(new Set(found).size).toBe(9);
  for (let ms = at("2026-10-25T00:00:00"); ms < at("2026-10-25T04:00:00"); ms += 300_000) {
    const next = found.find((time) => time > ms);
    const last = found.findLast((time) => time <= ms);
    expect(timesAfter(one, ms, 1), iso(ms)).toEqual([next]);
    expect(timesBetween(one, 0, ms, 1), iso(ms)).toEqual([last]);
  }
});

test("an interval goes on in real time while clocks change", () => {
  for (const day of ["2026-03-29", "2026-10-25"]) {
    const one = schedule('cron: "0 * * * *"\ntimezone: Europe/Berlin');
    const times = timesBetween(one, at(`${day}T00:00:00`) - 1, at(`${day}T05:00:00`), 100);
    expect(times).toHaveLength(6);
    expect(new Set(times.map((ms, i) => (i === 0 ? 3_600_000 : (times[i - 1] ?? 0) - ms)))).toEqual(
      new Set([3_600_000]),
    );
  }
});

test("leap days, month ends and both day fields are read as cron does", () => {
  expect(all(schedule('cron: "0 0 29 2 *"'), "2023-01-01T00:00:00", "2029-01-01T00:00:00")).toEqual(
    ["2024-02-29T00:00:00", "2028-02-29T00:00:00"],
  );
  expect(all(schedule('cron: "0 0 31 * *"'), "2026-01-01T00:00:00", "2026-06-30T00:00:00")).toEqual(
    ["2026-01-31T00:00:00", "2026-03-31T00:00:00", "2026-05-31T00:00:00"],
  );
  // Either of the two: the 13th, and Fridays.
  expect(all(schedule('cron: "0 0 13 * 5"'), "2026-02-01T00:00:00", "2026-02-21T00:00:00")).toEqual(
    ["2026-02-06T00:00:00", "2026-02-13T00:00:00", "2026-02-20T00:00:00"],
  );
  expect(
    all(schedule('cron: "*/20 0 0 1 1 *"'), "2026-01-01T00:00:00", "2026-01-02T00:00:00"),
  ).toEqual(["2026-01-01T00:00:20", "2026-01-01T00:00:40"]);
});

test("every counts from start, so that restarts and edits do not shift it", () => {
  const one = schedule("every: 45m\nstart: 2026-01-01T00:10:00\nend: 2026-01-01T03:00:00");
  expect(all(one, "2025-12-31T00:00:00", "2026-01-02T00:00:00")).toEqual([
    "2026-01-01T00:10:00",
    "2026-01-01T00:55:00",
    "2026-01-01T01:40:00",
    "2026-01-01T02:25:00",
  ]);
  expect(timesAfter(one, at("2026-01-01T00:55:00"), 9).map(iso)).toEqual([
    "2026-01-01T01:40:00",
    "2026-01-01T02:25:00",
  ]);
});

test("at is local to the zone unless it has an offset", () => {
  expect(iso(instantOf("2026-12-24T18:00:00", "Europe/Berlin") ?? 0)).toBe("2026-12-24T17:00:00");
  expect(iso(instantOf("2026-12-24 18:00", "America/New_York") ?? 0)).toBe("2026-12-24T23:00:00");
  expect(iso(instantOf("2026-12-24T18:00:00+05:30", "Europe/Berlin") ?? 0)).toBe(
    "2026-12-24T12:30:00",
  );
  for (const offset of ["+05:30", "+0530"])
    expect(iso(instantOf(`2026-12-24 18:00${offset}`, "Europe/Berlin") ?? 0)).toBe(
      "2026-12-24T12:30:00",
    );
  expect(iso(instantOf("2026-12-24", "UTC") ?? 0)).toBe("2026-12-24T00:00:00");
  for (const bad of ["tomorrow", "2026-13-01T00:00:00Z", "18:00", ""])
    expect(instantOf(bad, "UTC")).toBeUndefined();
  const one = schedule('at: ["2026-03-01T00:00:00", "2026-02-01T00:00:00", "2026-02-01T00:00:00"]');
  expect(all(one, "2026-01-01T00:00:00", "2027-01-01T00:00:00")).toEqual([
    "2026-02-01T00:00:00",
    "2026-03-01T00:00:00",
  ]);
});

test("what can never be, and what is misspelt, is refused with what to do", () => {
  const refusals: readonly [string, string][] = [
    ['cron: "0 0 31 2 *"', "has no time"],
    ['cron: "* * * *"', "neither five nor six fields"],
    ['cron: "0 0 0 1 1 1 2030"', "neither five nor six fields"],
    ['cron: "61 * * * *"', "cron: "],
    ["every: 500ms", "shorter than a second"],
    ["every: soon", 'every: "soon" is no time'],
    ["evry: 15m", '"evry" is no field'],
    ["every: 15m\nat: 2026-01-01", "every and at exclude each other"],
    ["timezone: UTC", "none of cron, every and at"],
    ["every: 15m\ntimezone: Mars/Base", '"Mars/Base" is not known'],
    ["every: 15m\nmissed: some", 'missed: "some" is none of one, all, none'],
    ["every: 15m\nstart: 2026-02-01\nend: 2026-01-01", "end is before start"],
    ["every: [", "line "],
    ["every: 15m\nevery: 16m", "map keys must be unique"],
  ];
  for (const [text, words] of refusals) expect(() => schedule(text), text).toThrow(words);
  const bare = (text: string) => () => readSchedule("s", text, "p", "UTC");
  expect(bare("- a")).toThrow("it is no map");
  expect(bare("every: 1m")).toThrow("task: what is to run is missing");
  expect(bare("every: 1m\ntask: {}")).toThrow("task: nothing to run");
  expect(bare("every: 1m\ntask: {exec: [x], id: a}")).toThrow("task.id: each task gets its own");
  expect(() => readSchedule("a/b", `every: 1m\n${TASK}`, "p", "UTC")).toThrow("is no name");
});
