/** The scheduler on a real mailbox with a clock of its own: missed times, overlap, crashes, a clock that is set back, bad files. */
import { EventEmitter } from "node:events";
import fs from "node:fs";
import { join } from "node:path";
import { describe, expect, test, vi } from "vitest";
import { stateTree } from "../../../src/core/state-tree.ts";
import { systemClock } from "../../../src/host/system-clock.ts";
import { claimNextCommand } from "../../../src/mailbox/commands/command-queue.ts";
import { openTrays } from "../../../src/mailbox/files/trays.ts";
import { writeControl } from "../../../src/parts/schedules/schedule-files.ts";
import { Scheduler } from "../../../src/parts/schedules/scheduler.ts";
import { seededRandom } from "../../support/seeded-random.ts";
import { tempDir } from "../../support/temp-dir.ts";

const MIN = 60_000;
const START = Date.parse("2026-01-01T00:00:00Z");

function newPlace() {
  const tree = stateTree(join(tempDir(), "state"));
  fs.mkdirSync(join(tree.dir, "schedules"), { recursive: true });
  let nowMs = START;
  const clock = { ...systemClock, wallMs: () => nowMs };
  const trays = openTrays(tree.mailbox, { durability: "process", clock });
  const controlTrays = openTrays(tree.control, { durability: "process", clock });
  const told: string[] = [];
  const skipped: string[] = [];
  let isPlanIdle = true;
  const newScheduler = (tellMs?: number): Scheduler =>
    new Scheduler(
      {
        settings: { schedules: {} },
        tree,
        trays,
        controlTrays,
        telemetry: {
          note: (_: string, { count, reason }: { count: number; reason: string }) =>
            skipped.push(`${reason} ${count}`),
        },
        alerts: { report: (_: string, text: string) => told.push(text) },
        facts: new EventEmitter(),
      } as never,
      () => Promise.resolve(isPlanIdle),
      tellMs,
    );
  const log = join(tree.dir, "schedules", ".log", "s.json");
  return {
    dir: tree.dir,
    told,
    skipped,
    newScheduler,
    controlTrays,
    setPlanIdle: (isIdle: boolean) => (isPlanIdle = isIdle),
    writeWhole: (text: string) => fs.writeFileSync(join(tree.dir, "schedules", "s.yaml"), text),
    write: (text: string, name = "s") =>
      fs.writeFileSync(
        join(tree.dir, "schedules", `${name}.yaml`),
        `${text}\ntask: {exec: ['true']}\n`,
      ),
    set: (ms: number) => (nowMs = ms),
    now: () => nowMs,
    /** The minutes after the start of the tasks that wait. */
    waiting: () =>
      fs
        .readdirSync(trays.inbox)
        .filter((file) => file.endsWith(".json"))
        .sort()
        .map((file) => {
          const task = JSON.parse(fs.readFileSync(join(trays.inbox, file), "utf8"));
          return task.created_at / 60 - START / MIN;
        }),
    /** All tasks end, and their records go. */
    endAll: () => {
      const files = fs.readdirSync(trays.inbox).filter((file) => file.endsWith(".json"));
      for (const file of files) fs.rmSync(join(trays.inbox, file));
      return files;
    },
    saveLog: () => (fs.existsSync(log) ? fs.readFileSync(log) : undefined),
    restoreLog: (bytes: Buffer | undefined) =>
      bytes === undefined ? fs.rmSync(log, { force: true }) : fs.writeFileSync(log, bytes),
  };
}

/** Looks at minute 0, and again at each of these minutes with a scheduler that was just started. */
async function lookAt(place: ReturnType<typeof newPlace>, ...minutes: number[]): Promise<void> {
  for (const minute of [0, ...minutes]) {
    place.set(START + minute * MIN);
    await place.newScheduler().look();
  }
}

test("of the times that were missed the newest, all or none fires", async () => {
  for (const [missed, fired, left] of [
    ["one", [60], "missed 5"],
    ["all", [10, 20, 30, 40, 50, 60], undefined],
    ["none", [], "missed 6"],
  ] as const) {
    const place = newPlace();
    place.write(`every: 10m\nmissed: ${missed}`);
    await lookAt(place, 65);
    expect(place.waiting(), missed).toEqual(fired);
    expect(place.skipped[0], missed).toBe(left);
    await lookAt(place, 65, 66);
    expect(place.waiting(), missed).toEqual(fired);
  }
});

describe("times that are skipped for one reason", () => {
  /** Looks every five seconds for 25 minutes, each time after a restart, and then once without that reason. */
  async function eventsOf(text: string, reason: string, tellMs?: number): Promise<string[]> {
    const place = newPlace();
    place.write(`every: 5s\n${text}`);
    const look = async (seconds: number): Promise<void> => {
      place.set(START + seconds * 1000);
      await place.newScheduler(tellMs).look();
    };
    if (reason === "paused") place.write("every: 5s\npaused: true");
    for (let seconds = 0; seconds <= 1500; seconds += 5) await look(seconds);
    place.endAll();
    place.write("every: 5s");
    await look(1505);
    const counts = place.skipped.map((one) => Number(one.replace(`${reason} `, "")));
    const { fired, skipped } = JSON.parse(String(place.saveLog())) as Record<string, number>;
    expect(counts.reduce((sum, count) => sum + count, 0)).toBe(skipped);
    expect(Number(fired) + Number(skipped)).toBe(301);
    return place.skipped;
  }

  test.each([
    ["paused", ""],
    ["overlap", "overlap: skip"],
  ])("are told together: %s", async (reason, text) => {
    const events = await eventsOf(text, reason);
    expect(events).toHaveLength(4);
    expect(events.slice(0, 3)).toEqual([`${reason} 1`, `${reason} 120`, `${reason} 120`]);
  });

  test("caught: an event for each of them", async () => {
    expect((await eventsOf("", "paused", 0)).length).toBeGreaterThan(280);
  });
});

test("of very many missed times the newest run, and none that is too old", async () => {
  const place = newPlace();
  place.write("every: 10m\nmissed: all\nmissed_max: 3\nmissed_within: 25m");
  await lookAt(place, 65);
  expect(place.waiting()).toEqual([40, 50, 60]);
  place.endAll();
  place.write("every: 10m\nmissed: all\nmissed_max: 2");
  await lookAt(place, 10_005);
  expect(place.waiting()).toEqual([9990, 10_000]);
});

test("a time that comes while the task of an earlier one has not ended follows the rule of the schedule", async () => {
  const inMinutes = async (overlap: string): Promise<[number[], ReturnType<typeof newPlace>]> => {
    const place = newPlace();
    place.write(`every: 10m\noverlap: ${overlap}`);
    await lookAt(place, 10, 20, 30);
    return [place.waiting(), place];
  };
  const [skip, skipPlace] = await inMinutes("skip");
  expect(skip).toEqual([10]);
  expect(skipPlace.skipped).toEqual(["overlap 1", "overlap 1"]);
  const [wait, waitPlace] = await inMinutes("wait");
  expect(wait).toEqual([10]);
  waitPlace.endAll();
  waitPlace.set(START + 31 * MIN);
  await waitPlace.newScheduler().look();
  expect(waitPlace.waiting()).toEqual([30]);
  const [allow] = await inMinutes("allow");
  expect(allow).toEqual([10, 20, 30]);
  const [replace, replacePlace] = await inMinutes("replace");
  expect(replace).toEqual([10, 20, 30]);
  const { command } = claimNextCommand(replacePlace.controlTrays, "o") ?? {};
  expect(command).toMatchObject({
    command: "cancel",
    args: { node: "s.20260101T001000Z", final: true },
  });
});

test("paused times pass, and times count again from when it is resumed", async () => {
  const place = newPlace();
  place.write("every: 10m\nmissed: all");
  await lookAt(place);
  writeControl(place.dir, "s", { v: 1, paused: true, at_ms: 0, manual_id: null });
  await lookAt(place, 35);
  expect(place.waiting()).toEqual([]);
  expect(place.skipped).toEqual(["paused 3"]);
  // Resumed while no supervisor ran.
  writeControl(place.dir, "s", { v: 1, paused: false, at_ms: START + 45 * MIN, manual_id: null });
  await lookAt(place, 61);
  expect(place.waiting()).toEqual([50, 60]);
});

test("a new schedule, and one whose times change, counts from now", async () => {
  const place = newPlace();
  place.set(START + 55 * MIN);
  place.write("every: 10m\nmissed: all");
  await place.newScheduler().look();
  expect(place.waiting()).toEqual([]);
  place.write("every: 1m\nmissed: all");
  place.set(START + 95 * MIN);
  await place.newScheduler().look();
  expect(place.waiting()).toEqual([]);
  // Another task is no other time.
  place.write("every: 1m\nmissed: all\ngrace: 5s");
  place.set(START + 97 * MIN);
  await place.newScheduler().look();
  expect(place.waiting()).toEqual([96, 97]);
});

test("a file that cannot be used is told, and leaves the last good one in force", async () => {
  const place = newPlace();
  place.write("every: 10m");
  place.write("evry: 10m", "other");
  const scheduler = place.newScheduler();
  await scheduler.look();
  expect(place.told.join()).toMatch(
    /schedules\/other.yaml: "evry" is no field .*did you mean every/,
  );
  place.write("every: 10x");
  place.set(START + 10 * MIN);
  await scheduler.look();
  expect(place.told.join()).toContain('"10x" is no time');
  expect(place.told.join()).toContain("the last good version is in force");
  expect(place.waiting()).toEqual([10]);
});

test("a clock that is set back by an hour fires nothing twice, and one that is set back by a day goes on from there", async () => {
  const place = newPlace();
  place.write("every: 10m\nmissed: all\noverlap: allow");
  await lookAt(place, 60);
  expect(place.endAll()).toHaveLength(6);
  place.set(START + 5 * MIN);
  await place.newScheduler().look();
  place.set(START + 61 * MIN);
  await place.newScheduler().look();
  expect(place.waiting()).toEqual([]);
  place.set(START - 24 * 60 * MIN);
  await place.newScheduler().look();
  place.set(START - 24 * 60 * MIN + 10 * MIN);
  await place.newScheduler().look();
  expect(place.waiting()).toEqual([-24 * 60 + 10]);
  place.endAll();
  // The times that ran before do not run again.
  place.set(START + 65 * MIN);
  await place.newScheduler().look();
  expect(place.waiting().filter((minute) => minute > 0)).toEqual([]);
});

test("a task of another one with the id of a time is left alone, and told", async () => {
  const place = newPlace();
  place.write("every: 10m");
  const other = join(place.dir, "mailbox", "inbox", "s.20260101T001000Z.json");
  await lookAt(place);
  fs.writeFileSync(other, '{"exec":["other"],"created_at":1767226200}');
  place.write("every: 10m\noverlap: allow");
  await lookAt(place, 10);
  expect(fs.readFileSync(other, "utf8")).toContain("other");
  expect(place.told.join()).toContain("another task has the id s.20260101T001000Z");
});

test("each time runs once, whatever dies: random steps, lost decisions and two schedulers at once", async () => {
  const seed = Number(process.env["MAILCHUTE_TEST_SEED"] ?? Math.floor(Math.random() * 2 ** 31));
  const random = seededRandom(seed);
  for (let round = 0; round < 30; round++) {
    const place = newPlace();
    place.write("every: 10m\nmissed: all\nmissed_max: 1000\noverlap: allow");
    await lookAt(place);
    const ran: string[] = [];
    let scheduler = place.newScheduler();
    for (let step = 0; step < 20; step++) {
      const before = place.saveLog();
      place.set(place.now() + random.below(40) * MIN);
      switch (random.below(4)) {
        case 0:
          // Killed before the decision was noted.
          await scheduler.look();
          place.restoreLog(before);
          scheduler = place.newScheduler();
          break;
        case 1:
          await Promise.all([scheduler.look(), place.newScheduler().look()]);
          break;
        case 2:
          scheduler = place.newScheduler();
          break;
        default:
          await scheduler.look();
      }
      if (random.below(2) === 0) ran.push(...place.endAll());
    }
    await place.newScheduler().look();
    ran.push(...place.endAll());
    const count = Math.floor((place.now() - START) / (10 * MIN));
    expect(new Set(ran).size, `seed ${seed}: once`).toBe(ran.length);
    expect(ran.length, `seed ${seed}: all`).toBe(count);
  }
});

test("with overlap skip no two tasks of a schedule are there at once, whatever dies", async () => {
  const seed = Number(process.env["MAILCHUTE_TEST_SEED"] ?? Math.floor(Math.random() * 2 ** 31));
  const random = seededRandom(seed);
  for (let round = 0; round < 30; round++) {
    const place = newPlace();
    place.write("every: 10m");
    await lookAt(place);
    for (let step = 0; step < 20; step++) {
      const before = place.saveLog();
      place.set(place.now() + random.below(25) * MIN);
      await place.newScheduler().look();
      expect(place.waiting().length, `seed ${seed}`).toBeLessThanOrEqual(1);
      if (random.below(3) === 0) place.restoreLog(before);
      if (random.below(3) === 0) place.endAll();
    }
  }
});

test("what cannot be read now does not count as missing: nothing fires until it can be read, and nothing is left out", async () => {
  const place = newPlace();
  place.write("every: 10m\nmissed: all");
  await lookAt(place);
  const log = join(place.dir, "schedules", ".log", "s.json");
  const { openSync } = fs;
  const short = vi.spyOn(fs, "openSync").mockImplementation((path, ...rest) => {
    if (path === log)
      throw Object.assign(new Error("EMFILE: too many open files"), { code: "EMFILE" });
    return openSync(path, ...rest);
  });
  place.set(START + 35 * MIN);
  await place.newScheduler().look();
  short.mockRestore();
  expect(place.waiting()).toEqual([]);
  expect(place.told.join()).toContain("schedule s: EMFILE");
  await place.newScheduler().look();
  expect(place.waiting()).toEqual([10, 20, 30]);
});

test("with overlap replace a decision that was not noted does not cancel its own task", async () => {
  const place = newPlace();
  place.write("every: 10m\noverlap: replace");
  await lookAt(place);
  const before = place.saveLog();
  place.set(START + 10 * MIN);
  await place.newScheduler().look();
  place.restoreLog(before);
  await place.newScheduler().look();
  expect(place.waiting()).toEqual([10]);
  expect(claimNextCommand(place.controlTrays, "o")).toBeUndefined();
});

test("a schedule of the plan passes over a time, or waits, as long as the plan is at work", async () => {
  for (const [overlap, waiting, skipped] of [
    ["skip", [10], ["overlap 1"]],
    ["wait", [5, 10], []],
  ] as const) {
    const place = newPlace();
    place.writeWhole(
      `every: 5m\noverlap: ${overlap}\nroadmap: {reset: [a, b], downstream: true}\n`,
    );
    const scheduler = place.newScheduler();
    await scheduler.look();
    place.setPlanIdle(false);
    place.set(START + 5 * MIN);
    await scheduler.look();
    expect(place.waiting()).toEqual([]);
    place.setPlanIdle(true);
    await scheduler.look();
    const inbox = join(place.dir, "mailbox", "inbox");
    const [first = ""] = fs.readdirSync(inbox);
    if (overlap === "wait") {
      expect(JSON.parse(fs.readFileSync(join(inbox, first), "utf8"))).toMatchObject({
        exec: ["mailchute", "roadmap", "reset", "a", "b", "--downstream"],
        metadata: {
          roadmap_reset: { nodes: ["a", "b"], downstream: true },
          schedule: { name: "s" },
        },
      });
      fs.renameSync(join(inbox, first), join(place.dir, first));
    }
    place.set(START + 10 * MIN);
    await scheduler.look();
    const before = overlap === "wait" ? [5] : [];
    expect([...before, ...place.waiting()], overlap).toEqual(waiting);
    expect(place.skipped, overlap).toEqual(skipped);
  }
});
