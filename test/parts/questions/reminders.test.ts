/** When a person is told of an open question. */
import { expect, it } from "vitest";
import { Reminders } from "../../../src/parts/questions/reminders.ts";

const MINUTE_MS = 60_000;
const question = (id: string, askedAtMs = 0) => ({ id, asked_at_ms: askedAtMs });

it("a question is told at once, and again after 5 minutes, 1 hour and 3 hours", () => {
  const reminders = new Reminders();
  const told: number[] = [];
  for (let minute = 0; minute < 600; minute++)
    if (reminders.due([question("a")], minute * MINUTE_MS).length > 0) told.push(minute);
  expect(told).toEqual([0, 5, 60, 180]);
});

it("each question has its own times", () => {
  const reminders = new Reminders();
  const [a, b] = [question("a"), question("b", 4 * MINUTE_MS)];
  expect(reminders.due([a], 0)).toEqual([a]);
  expect(reminders.due([a, b], 4 * MINUTE_MS)).toEqual([b]);
  expect(reminders.due([a, b], 5 * MINUTE_MS)).toEqual([a]);
});

it("a clock that is set back repeats nothing, and a restart tells of each once", () => {
  const reminders = new Reminders();
  expect(reminders.due([question("a")], 70 * MINUTE_MS)).toHaveLength(1);
  for (const minute of [0, 10, 70])
    expect(reminders.due([question("a")], minute * MINUTE_MS)).toEqual([]);
  expect(new Reminders().due([question("a")], 70 * MINUTE_MS)).toHaveLength(1);
});
