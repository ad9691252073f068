/** The rates of a task with two limits: all are charged for a start, or none. */
import { join } from "node:path";
import { expect, it } from "vitest";
import { parseRate, type Rate } from "../../src/core/rate.ts";
import { RateBucket, systemBucketClock } from "../../src/host/rate-bucket.ts";
import { Rates } from "../../src/worker/rates.ts";
import { tempDir } from "../support/temp-dir.ts";

const HOURLY = parseRate("1/h", 3) as Rate;

function newRates() {
  const dir = join(tempDir(), "limits");
  const settings = { rate: "1/h", burst: 3 };
  const rates = new Rates(dir, { groups: {}, limits: { a: settings, b: settings, c: 1 } }, false);
  const bucketOf = (name: string): RateBucket =>
    new RateBucket(dir, name, systemBucketClock(), false);
  const charge = (...limits: string[]): ReturnType<Rates["charge"]> =>
    rates.charge({ limits } as never, {});
  return { bucketOf, charge };
}

it("a rate that is used up costs the other one no start", () => {
  const { bucketOf, charge } = newRates();
  // A new bucket allows one start.
  expect(charge("b")).toMatchObject({ may: true });
  for (let n = 0; n < 5; n++) expect(charge("a", "b")).toMatchObject({ may: false, limit: "b" });
  expect(charge("a", "c")).toMatchObject({ may: true, rates: { a: expect.any(Number) } });
  expect(charge("a")).toMatchObject({ may: false, limit: "a" });
  expect(bucketOf("a").waitMs(HOURLY)).toBeGreaterThan(3_500_000);
});

it("a charge that is taken back allows the same start again, and no more", () => {
  const { bucketOf } = newRates();
  const bucket = bucketOf("a");
  expect(bucket.take(HOURLY).waitMs).toBe(0);
  bucket.giveBack(HOURLY);
  expect(bucket.take(HOURLY).waitMs).toBe(0);
  expect(bucket.take(HOURLY).waitMs).toBeGreaterThan(0);
});
