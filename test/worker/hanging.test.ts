/** Who lives but hangs is noticed, and nothing else is: the three watches, with clocks of the test, and broken variants of them. */
import fs from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { DEFAULT_SETTINGS } from "../../src/core/settings.ts";
import { beatMsOf } from "../../src/core/stall.ts";
import { stateTree } from "../../src/core/state-tree.ts";
import { thisProcess } from "../../src/host/identity.ts";
import { treeIdOf } from "../../src/host/tree-id.ts";
import { LeaseObserver } from "../../src/mailbox/recover/lease-observer.ts";
import { HangingWorkers } from "../../src/supervisor/pool/hanging-workers.ts";
import { MainBeat, MainWatch } from "../../src/worker/main-beat.ts";
import { SupervisorWatch } from "../../src/worker/supervisor-watch.ts";
import { tempDir } from "../support/temp-dir.ts";

const { stall_ms: STALL_MS } = DEFAULT_SETTINGS;
const BEAT_MS = beatMsOf(DEFAULT_SETTINGS, DEFAULT_SETTINGS.heartbeat_ms);
const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;

/** One watch, and who is watched by it. */
interface Pair {
  beat(): void;
  /** A function of a task begins; undefined where no function can run. */
  enter?: () => () => void;
  isHanging(nowMs: number): boolean;
}

type MakePair = (silence?: LeaseObserver) => Pair;

const mainThread: MakePair = (silence) => {
  const main = new MainBeat();
  // As the heartbeat thread has it.
  const watch = new MainWatch(new MainBeat(main.shared), STALL_MS, BEAT_MS, silence);
  return {
    beat: () => main.beat(),
    enter: () => main.enter(),
    isHanging: (nowMs) => watch.isHanging(nowMs),
  };
};

const workerProcess: MakePair = (silence) => {
  const files = workersAndTheirFiles(silence);
  return {
    beat: () => files.beat(),
    isHanging(nowMs) {
      files.beatOfSupervisor();
      return files.isHanging(nowMs);
    },
  };
};

function workersAndTheirFiles(silence?: LeaseObserver): Pair & { beatOfSupervisor(): void } {
  const tree = stateTree(tempDir());
  const file = join(tree.workers, "w-1.json");
  fs.mkdirSync(tree.workers);
  for (const path of [file, tree.supervisor]) fs.writeFileSync(path, "{}");
  const watch = new HangingWorkers(tree, DEFAULT_SETTINGS, silence);
  const worker = { id: "w-1", pid: 1, tie: "child", isHere: true, slots: 1, slotsPeak: 1 } as const;
  return {
    beat: beatsOf(file),
    beatOfSupervisor: beatsOf(tree.supervisor),
    isHanging: (nowMs) => watch.find([worker], nowMs).length > 0,
  };
}

const supervisor: MakePair = (silence) => {
  const tree = stateTree(tempDir());
  const { place, startTicks } = thisProcess();
  fs.writeFileSync(
    tree.supervisor,
    JSON.stringify({
      pid: process.pid,
      place,
      start_ticks: startTicks,
      tree: treeIdOf(tree.dir),
      nonce: "n",
      status: "running",
    }),
  );
  const changes: (number | undefined)[] = [];
  const note = (pid: number | undefined): void => void changes.push(pid);
  const watch = new SupervisorWatch(tree, DEFAULT_SETTINGS, note, silence);
  return {
    beat: beatsOf(tree.supervisor),
    isHanging(nowMs) {
      watch.look(nowMs);
      // It is told of once.
      expect(changes.at(-1)).toBe(watch.isHanging ? process.pid : undefined);
      return watch.isHanging;
    },
  };
};

function beatsOf(file: string): () => void {
  let at = 1;
  return () => fs.utimesSync(file, ++at, at);
}

/** A course of time: the watch looks at each beat, and learns nothing but what it sees. */
class Course {
  nowMs = 1000;
  /** When the watch first said that the other hangs; undefined: never. */
  alarmMs: number | undefined;
  private readonly pair: Pair;

  constructor(pair: Pair) {
    this.pair = pair;
  }

  /** @param moves whether the other moves in this time */
  pass(ms: number, moves: boolean): this {
    for (const end = this.nowMs + ms; this.nowMs < end; this.nowMs += BEAT_MS) {
      if (moves) this.pair.beat();
      if (this.pair.isHanging(this.nowMs)) this.alarmMs ??= this.nowMs;
    }
    return this;
  }

  /** Nothing moves, the watch itself included: its next look comes before a beat of the other. */
  sleep(ms: number): this {
    this.nowMs += ms;
    if (this.pair.isHanging(this.nowMs)) this.alarmMs ??= this.nowMs;
    this.nowMs += BEAT_MS;
    return this;
  }
}

/** Each scenario returns what is wrong, if anything. */
const SCENARIOS: Readonly<Record<string, (pair: Pair) => string | undefined>> = {
  "who moves is left alone": (pair) => falseAlarm(new Course(pair).pass(20 * MINUTE_MS, true)),
  "who stops is noticed in time": (pair) => {
    const course = new Course(pair).pass(10 * MINUTE_MS, true);
    const fromMs = course.nowMs;
    const { alarmMs } = course.pass(10 * MINUTE_MS, false);
    if (alarmMs === undefined) return "it was never noticed";
    const afterMs = alarmMs - fromMs;
    return afterMs >= STALL_MS - BEAT_MS && afterMs <= STALL_MS + 2 * BEAT_MS
      ? undefined
      : `it was noticed after ${afterMs} ms`;
  },
  "who moves again is left alone again": (pair) => {
    new Course(pair).pass(2 * STALL_MS, false);
    const course = new Course(pair);
    course.nowMs += 2 * STALL_MS;
    pair.beat();
    return falseAlarm(course.pass(10 * MINUTE_MS, true));
  },
  "a machine that slept for an hour is no alarm": (pair) =>
    falseAlarm(
      new Course(pair)
        .pass(MINUTE_MS, true)
        .sleep(HOUR_MS)
        .pass(2 * MINUTE_MS, true),
    ),
  "a laptop that wakes for seconds all night is no alarm": (pair) => {
    const course = new Course(pair).pass(MINUTE_MS, true);
    for (let n = 0; n < 50; n++) course.sleep(10 * MINUTE_MS).pass(BEAT_MS, true);
    return falseAlarm(course);
  },
  "a function that computes for ten minutes is no alarm": (pair) => {
    const leave = pair.enter?.();
    if (leave === undefined) return undefined;
    const course = new Course(pair).pass(10 * MINUTE_MS, false);
    leave();
    return falseAlarm(course.pass(2 * MINUTE_MS, true));
  },
  "a thread that blocks after its functions is noticed": (pair) => {
    const leave = pair.enter?.();
    if (leave === undefined) return undefined;
    const course = new Course(pair).pass(10 * MINUTE_MS, false);
    leave();
    const { alarmMs } = course.pass(2 * MINUTE_MS, false);
    return alarmMs === undefined ? "it was never noticed" : undefined;
  },
};

function falseAlarm({ alarmMs }: Course): string | undefined {
  return alarmMs === undefined ? undefined : `a false alarm at ${alarmMs} ms`;
}

function failing(make: () => Pair): string[] {
  return Object.keys(SCENARIOS).filter((name) => SCENARIOS[name]?.(make()) !== undefined);
}

describe.each([
  ["the main thread of a worker, watched by its heartbeat thread", mainThread],
  ["a worker process, watched by the supervisor", workerProcess],
  ["a supervisor, watched by its workers", supervisor],
])("%s", (_, make) => {
  for (const [name, scenario] of Object.entries(SCENARIOS))
    test(name, () => expect(scenario(make())).toBeUndefined());

  test("a watch that sees no silence misses who stops", () => {
    class Deaf extends LeaseObserver {
      override silenceMs(): number {
        return 0;
      }
    }
    expect(failing(() => make(new Deaf(BEAT_MS)))).toContain("who stops is noticed in time");
  });

  test("a watch that counts its own sleep gives false alarms", () => {
    // It takes no gap between two looks for a sleep.
    expect(failing(() => make(new LeaseObserver(Number.POSITIVE_INFINITY)))).toEqual([
      "a machine that slept for an hour is no alarm",
      "a laptop that wakes for seconds all night is no alarm",
    ]);
  });
});

test("a main thread that does not say that it runs a function is a false alarm", () => {
  const forgetful = (): Pair => ({ ...mainThread(), enter: () => () => {} });
  expect(failing(forgetful)).toEqual(["a function that computes for ten minutes is no alarm"]);
});

test("a main thread that never leaves its function is never noticed", () => {
  const stuck = (): Pair => {
    const pair = mainThread();
    return {
      ...pair,
      enter: () => {
        pair.enter?.();
        return () => {};
      },
    };
  };
  expect(failing(stuck)).toEqual(["a thread that blocks after its functions is noticed"]);
});

test("with stall_ms 0 nothing is watched", () => {
  const main = new MainWatch(new MainBeat(), 0, BEAT_MS);
  for (let n = 0; n < 100; n++) expect(main.isHanging(n * BEAT_MS)).toBe(false);
  const off = new HangingWorkers(stateTree(tempDir()), { ...DEFAULT_SETTINGS, stall_ms: 0 });
  const worker = { id: "w-1", pid: 1, tie: "child", isHere: true, slots: 1, slotsPeak: 1 } as const;
  for (let n = 0; n < 100; n++) expect(off.find([worker], n * BEAT_MS)).toEqual([]);
});

/** A disk that takes no heartbeat for a while, as one that is mounted read-only. @returns whether a worker counted as hanging */
function throughRefusal(silence?: LeaseObserver): boolean {
  const files = workersAndTheirFiles(silence);
  const refusedMs = STALL_MS * 3;
  let isAlarm = false;
  for (let nowMs = 1000; nowMs < refusedMs * 3; nowMs += BEAT_MS) {
    // The heartbeat of the worker comes last when the disk takes them again.
    if (nowMs < refusedMs || nowMs > 2 * refusedMs) files.beatOfSupervisor();
    isAlarm ||= files.isHanging(nowMs);
    if (nowMs < refusedMs || nowMs > 2 * refusedMs) files.beat();
  }
  return isAlarm;
}

test("while the disk takes no heartbeat, not even that of the supervisor, no worker counts as hanging", () => {
  expect(throughRefusal()).toBe(false);
  // A broken variant: it does not look at its own document.
  class Blind extends LeaseObserver {
    override silenceMs(...[file, mtimeMs, nowMs]: Parameters<LeaseObserver["silenceMs"]>): number {
      return file === "" ? 0 : super.silenceMs(file, mtimeMs, nowMs);
    }
  }
  expect(throughRefusal(new Blind(BEAT_MS))).toBe(true);
});
