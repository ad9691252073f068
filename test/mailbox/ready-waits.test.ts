/** How long what is ready waits when the clock that set its time was wrong. Simulated clocks; the pool itself: test/supervisor/wrong-clocks. */
import { expect, test } from "vitest";
import { formatName } from "../../src/core/names.ts";
import { systemClock } from "../../src/host/system-clock.ts";
import { newSubmission } from "../../src/mailbox/claim/claim.ts";
import { openTrays, type Trays } from "../../src/mailbox/files/trays.ts";
import { ReadyWaits } from "../../src/mailbox/find/ready-waits.ts";
import { MemoryDisk, memoryStorage } from "../simulation/memory-storage.ts";

const HOUR_MS = 3_600_000;
const MAX_MS = 60_000;
const START_MS = 1_700_000_000_000;

/** A mailbox with one ready task, and processes whose clocks the test moves. */
function setUp(task: object, aheadMs: number) {
  const disk = new MemoryDisk();
  const time = { wallMs: START_MS, monotonicMs: 0 };
  const open = (): Trays =>
    openTrays("/m", {
      storage: memoryStorage(disk),
      clock: { wallMs: () => time.wallMs, monotonicMs: () => time.monotonicMs, random: () => 0 },
      durability: "process",
    });
  const trays = open();
  const file = formatName(newSubmission(systemClock, "a", 2));
  const path = `/m/processing/${file}`;
  disk.fill(disk.createEmpty(path), Buffer.from(JSON.stringify({ id: "a", prompt: "x", ...task })));
  disk.touch(path, START_MS + aheadMs);
  const pass = (ms: number): void => {
    time.wallMs += ms;
    time.monotonicMs += ms;
  };
  return { file, time, pass, trays, newProcess: () => new ReadyWaits(open(), MAX_MS) };
}

test("a backoff that a wrong clock has set to tomorrow is over after the longest backoff", () => {
  const { file, pass, newProcess } = setUp({}, 20 * HOUR_MS);
  const waits = newProcess();
  expect(waits.leftMs(file)).toBe(MAX_MS);
  pass(MAX_MS - 1);
  expect(waits.leftMs(file)).toBe(1);
  pass(1);
  expect(waits.leftMs(file)).toBe(0);
});

test("a clock that is set back while a backoff runs does not make it longer", () => {
  const { file, time, pass, newProcess } = setUp({}, 10_000);
  const waits = newProcess();
  expect(waits.leftMs(file)).toBe(10_000);
  time.wallMs -= 20 * HOUR_MS;
  pass(10_000);
  expect(waits.leftMs(file)).toBe(0);
});

test("processes that die before the longest backoff is over do not put a task off for ever", () => {
  const { file, pass, newProcess } = setUp({}, 20 * HOUR_MS);
  for (let left = MAX_MS; left > 0; left -= 15_000) {
    expect(newProcess().leftMs(file)).toBe(left);
    pass(15_000);
  }
  expect(newProcess().leftMs(file)).toBe(0);
});

test("not_before is what it says, however far away it is, and by the wall clock", () => {
  const notBeforeMs = START_MS + 48 * HOUR_MS;
  const { file, time, pass, newProcess, trays } = setUp(
    { not_before: notBeforeMs / 1000 },
    48 * HOUR_MS,
  );
  const waits = newProcess();
  expect(waits.leftMs(file)).toBe(48 * HOUR_MS);
  pass(40 * HOUR_MS);
  expect(waits.leftMs(file)).toBe(8 * HOUR_MS);
  expect(newProcess().leftMs(file)).toBe(8 * HOUR_MS);
  time.wallMs += 8 * HOUR_MS;
  expect(waits.leftMs(file)).toBe(0);
  // Its time still says so to those who know nothing of us.
  expect(trays.storage.look(`/m/processing/${file}`)?.mtimeMs).toBe(notBeforeMs);
});

test("a time that both not_before and a wrong clock have set keeps to not_before", () => {
  const notBeforeMs = START_MS + 2 * HOUR_MS;
  const { file, newProcess, trays } = setUp({ not_before: notBeforeMs / 1000 }, 20 * HOUR_MS);
  expect(newProcess().leftMs(file)).toBe(2 * HOUR_MS);
  expect(trays.storage.look(`/m/processing/${file}`)?.mtimeMs).toBe(notBeforeMs);
  expect(newProcess().leftMs(file)).toBe(2 * HOUR_MS);
});

test("what was given back with a delay under the name it had before waits anew", () => {
  const { file, newProcess, trays } = setUp({}, 0);
  const waits = newProcess();
  expect(waits.leftMs(file)).toBe(0);
  trays.storage.touch(`/m/processing/${file}`, START_MS + 5000);
  expect(waits.leftMs(file)).toBe(5000);
});
