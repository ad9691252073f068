/** A disk that refuses for hours: tried again in its time, and told of once. */
import { expect, it, onTestFinished, vi } from "vitest";
import { DiskPause } from "../../src/worker/disk-pause.ts";

it("tells of each longer pause once, then no more, and anew when the disk had given in meanwhile", () => {
  vi.useFakeTimers();
  const lines: string[] = [];
  const write = vi.spyOn(process.stderr, "write").mockImplementation((text) => {
    lines.push(String(text));
    return true;
  });
  onTestFinished(() => {
    write.mockRestore();
    vi.useRealTimers();
  });
  let tries = 0;
  const pause = new DiskPause(() => {
    tries += 1;
    pause.begin("settle a", { code: "ENOSPC" });
  });
  pause.begin("settle a", { code: "ENOSPC" });
  vi.advanceTimersByTime(3_600_000);
  expect(tries).toBeGreaterThan(700);
  const waits = lines.map((line) => /\(ENOSPC\); trying again (.*) ms/.exec(line)?.[1]);
  expect(waits).toEqual([
    "in 100",
    "in 200",
    "in 400",
    "in 800",
    "in 1600",
    "in 3200",
    "every 5000",
  ]);

  pause.shorten();
  vi.advanceTimersByTime(5000);
  expect(lines[7]).toBe("mailchute: cannot settle a yet (ENOSPC); trying again in 200 ms\n");
  vi.clearAllTimers();
});
