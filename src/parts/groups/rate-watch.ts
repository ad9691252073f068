/**
 * Knows how soon a rate allows the next start, so that no task is accepted only to be held. Workers charge the rate when a run begins;
 * a task that was accepted counts here until the file shows it.
 */
import { afterStart, allows, emptyUs, type Rate, waitMsOf } from "../../core/rate.ts";
import { type BucketClock, RateBucket } from "../../host/rate-bucket.ts";

/** What the file says is true for so long, beside what was accepted since (µs). */
const LOOK_US = 10_000;

export class RateWatch {
  private readonly bucket: RateBucket;
  private readonly clock: BucketClock;
  private fullUs = 0;
  private lookedUs = Number.NEGATIVE_INFINITY;

  constructor(dir: string, name: string, clock: BucketClock) {
    this.bucket = new RateBucket(dir, name, clock, false);
    this.clock = clock;
  }

  /** Ms until the next start; 0: now. @throws a system error */
  waitMs(rate: Rate): number {
    if (this.clock.nowUs() - this.lookedUs >= LOOK_US) {
      const readUs = this.bucket.read(rate);
      this.lookedUs = this.clock.nowUs();
      this.fullUs = Math.max(readUs, Math.min(this.fullUs, emptyUs(rate, this.lookedUs)));
    }
    // After the look: a new bucket allows its start from then on.
    const nowUs = this.clock.nowUs();
    return allows(rate, this.fullUs, nowUs) ? 0 : waitMsOf(rate, this.fullUs, nowUs);
  }

  noteStart(rate: Rate): void {
    this.fullUs = afterStart(rate, this.fullUs, this.clock.nowUs());
  }
}
