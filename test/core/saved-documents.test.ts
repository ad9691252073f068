/** Documents as other programs leave them: what says something wrong counts as not said. */
import { expect, it } from "vitest";
import {
  controlOf,
  INITIAL_CONTROL,
  supervisorOf,
  workerOf,
} from "../../src/core/saved-documents.ts";

it("of control.json each member counts that says what it may", () => {
  const good = {
    paused: true,
    paused_by: "somebody",
    max_workers: 0,
    slots: { "w-1-1": 2 },
    applied: ["a"],
  };
  expect(controlOf(good)).toEqual({ ...INITIAL_CONTROL, ...good });
  expect(controlOf(undefined)).toEqual(INITIAL_CONTROL);
  const bad = [
    { paused: "no", max_workers: "many", slots: null, applied: {} },
    { paused: 1, max_workers: -3, slots: [2], applied: [7] },
    { paused: null, max_workers: 2.5, slots: { "w-1-1": "2" }, applied: null, paused_at: 7 },
    { replan_paused: {}, max_workers: 1e9, max_workers_over: [], paused_by: false },
  ];
  for (const saved of bad) expect(controlOf(saved)).toEqual(INITIAL_CONTROL);
  expect(controlOf({ ...good, max_workers: "2" }).paused).toBe(true);
});

const who = { pid: 7, place: "0123456789ab", start_ticks: 5 };

it("a document that does not say who it is of is of nobody", () => {
  const supervisor = { ...who, nonce: "n", status: "running", waiting: {} };
  const worker = { ...who, id: "w-7-5", slots: 2 };
  expect(supervisorOf(supervisor)).toEqual(supervisor);
  expect(workerOf(worker)).toBe(worker);
  for (const fault of [{ pid: "7" }, { pid: -1 }, { pid: 0 }, { place: null }, { start_ticks: {} }])
    for (const [read, whole] of [
      [supervisorOf, supervisor],
      [workerOf, worker],
    ] as const)
      expect(read({ ...whole, ...fault }), JSON.stringify(fault)).toBeUndefined();
  expect(supervisorOf({ ...supervisor, waiting: 5 })).toBeUndefined();
  expect(workerOf({ ...worker, id: 5 })).toBeUndefined();
});

it("a report of a supervisor that makes no sense counts as not made, and the others stay", () => {
  const supervisor = { ...who, nonce: "n", status: "running", waiting: {} };
  const good = {
    plan_holds: { asking: [{ id: "a", question: null }], held: [], held_count: 0 },
    roadmap: { open: 1 },
    troubles: [{ what: "no memory", do: "buy some" }],
  };
  expect(supervisorOf({ ...supervisor, ...good })).toEqual({ ...supervisor, ...good });
  const bad = {
    plan_holds: [5, { asking: 5, held: [] }, { asking: [{ id: 5 }], held: [] }, { asking: [] }],
    roadmap: [5, { open: "many" }],
    troubles: [null, {}, ["x"], [{ what: 5, do: "" }]],
  };
  for (const [key, values] of Object.entries(bad))
    for (const value of values) {
      const { [key as keyof typeof good]: _gone, ...others } = good;
      const read = supervisorOf({ ...supervisor, ...good, [key]: value });
      expect(read, `${key}: ${JSON.stringify(value)}`).toEqual({ ...supervisor, ...others });
    }
});
