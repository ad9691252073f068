import { spawn } from "node:child_process";
import { once } from "node:events";
import fs from "node:fs";
import { join } from "node:path";
import { beforeEach, describe, expect, it } from "vitest";
import { parseRate, type Rate } from "../../src/core/rate.ts";
import { type BucketClock, RateBucket } from "../../src/host/rate-bucket.ts";
import { tempDir } from "../support/temp-dir.ts";

const rate = (text: string, burst = 1): Rate => parseRate(text, burst) as Rate;
const MINUTE = rate("60/min", 3);

/** Takes as often as it can for a while, and prints when. */
const TAKES = `
import { createJiti } from "jiti";
const load = createJiti(${JSON.stringify(import.meta.url)}, { fsCache: false });
const { RateBucket, systemBucketClock } = await load.import("../../src/host/rate-bucket.ts");
const { parseRate } = await load.import("../../src/core/rate.ts");
const clock = systemBucketClock();
const bucket = new RateBucket(process.argv[1], "x", clock, false);
const rate = parseRate("500/s", 5);
const untilUs = clock.nowUs() + 300_000;
while (clock.nowUs() < untilUs) {
  const { waitMs, atUs } = bucket.take(rate);
  if (waitMs === 0) console.log(atUs);
}
`;

describe("the bucket of a rate", () => {
  let dir: string;
  let nowUs: number;
  let wallMs: number;
  const clockOf = (boot: string): BucketClock => ({
    boot,
    nowUs: () => nowUs,
    wallMs: () => wallMs,
  });
  const open = (boot = "a1"): RateBucket => new RateBucket(dir, "github", clockOf(boot), false);
  /** How many starts it allows now. */
  const burstOf = (bucket: RateBucket, one: Rate): number => {
    let count = 0;
    while (bucket.take(one).waitMs === 0) count++;
    return count;
  };

  beforeEach(() => {
    dir = join(tempDir(), "limits");
    nowUs = 1e9;
    wallMs = 1_800_000_000_000;
  });

  it("begins with one start, fills up to the burst, and is one file", () => {
    const bucket = open();
    expect(burstOf(bucket, MINUTE)).toBe(1);
    nowUs += 1_000_000;
    expect(burstOf(open(), MINUTE)).toBe(1);
    nowUs += 60_000_000;
    expect(burstOf(bucket, MINUTE)).toBe(3);
    expect(fs.readdirSync(join(dir, "github"))).toHaveLength(1);
    expect(fs.readdirSync(join(dir, ".tmp"))).toEqual([]);
  });

  it("takes no notice of a date that changes", () => {
    const bucket = open();
    burstOf(bucket, MINUTE);
    wallMs += 1e9;
    expect(burstOf(bucket, MINUTE)).toBe(0);
    wallMs -= 2e9;
    nowUs += 1_000_000;
    expect(burstOf(bucket, MINUTE)).toBe(1);
  });

  it("is empty after a restart of the machine, and then fills up", () => {
    burstOf(open(), MINUTE);
    nowUs = 5000;
    wallMs += 1e9;
    const again = open("b2");
    expect(again.take(MINUTE).waitMs).toBe(1000);
    nowUs += 999_999;
    expect(burstOf(again, MINUTE)).toBe(0);
    nowUs += 1;
    expect(burstOf(again, MINUTE)).toBe(1);
  });

  it("begins such a wait once, also when it is only looked at", () => {
    const day = rate("1/d");
    burstOf(open(), day);
    for (const [boot, one] of [
      ["a1", MINUTE],
      ["b2", MINUTE],
    ] as const) {
      const bucket = open(boot);
      const fullUs = bucket.read(one);
      nowUs += 1_000_000;
      expect(bucket.read(one)).toBe(fullUs);
      expect(burstOf(bucket, one)).toBe(1);
    }
  });

  it("of a day goes on by the date after a restart of the machine", () => {
    const day = rate("1/d");
    expect(burstOf(open(), day)).toBe(1);
    nowUs = 5000;
    wallMs += 20 * 3_600_000;
    expect(open("b2").take(day).waitMs).toBe(4 * 3_600_000);
    wallMs += 4 * 3_600_000;
    expect(burstOf(open("c3"), day)).toBe(1);
    // A date that was set back makes no wait longer than an empty bucket.
    wallMs -= 1e12;
    expect(open("d4").take(day).waitMs).toBe(24 * 3_600_000);
  });

  it("keeps its debt when the rate changes, up to that of an empty bucket", () => {
    const bucket = open();
    nowUs += 60_000_000;
    burstOf(bucket, MINUTE);
    expect(bucket.take(rate("1/min")).waitMs).toBeGreaterThan(1000);
    expect(bucket.take(rate("100/s")).waitMs).toBe(10);
    nowUs += 10_000;
    expect(bucket.take(rate("100/s")).waitMs).toBe(0);
  });

  it("is made anew when a person removes it, with one start", () => {
    burstOf(open(), MINUTE);
    fs.rmSync(join(dir, "github"), { recursive: true });
    expect(burstOf(open(), MINUTE)).toBe(1);
    fs.rmSync(join(dir, "github", fs.readdirSync(join(dir, "github"))[0] ?? ""));
    expect(burstOf(open(), MINUTE)).toBe(1);
    fs.writeFileSync(join(dir, "github", "notes.txt"), "of a person");
    expect(burstOf(open(), MINUTE)).toBe(0);
    fs.rmSync(
      join(
        dir,
        "github",
        fs.readdirSync(join(dir, "github")).find((name) => name.startsWith("a1")) ?? "",
      ),
    );
    expect(() => open().take(MINUTE)).toThrow("other files than ours");
  });

  it("gives several processes together no more than one", async () => {
    const lines: number[] = [];
    const children = [1, 2].map(() =>
      spawn(process.execPath, ["--input-type=module", "-e", TAKES, dir]),
    );
    await Promise.all(
      children.map(async (child) => {
        let text = "";
        child.stdout.on("data", (chunk: Buffer) => (text += chunk.toString()));
        await once(child, "close");
        lines.push(...text.split("\n").filter(Boolean).map(Number));
      }),
    );
    lines.sort((a, b) => a - b);
    expect(lines.length).toBeGreaterThan(20);
    for (let first = 0; first + 5 < lines.length; first++) {
      const spanS = ((lines[first + 5] ?? 0) - (lines[first] ?? 0)) / 1e6;
      expect(6).toBeLessThanOrEqual(5 + 500 * spanS + 1e-6);
    }
  });
});
