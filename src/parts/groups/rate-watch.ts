/**
 * Knows how soon a rate allows the next start, so that no task is accepted only to be held. Workers charge the rate when a run
 * begins. A task that was accepted counts here until the file shows its charge.
 */
import { afterStart, allows, emptyUs, type Rate, waitMsOf } from "../../core/rate.ts";
import { type BucketClock, RateBucket } from "../../host/rate-bucket.ts";

/** The file is read again after this long. Until then its value counts, with the tasks that were accepted since (µs). */
const LOOK_US = 10_000;

export class RateWatch {
  private readonly bucket: RateBucket;
  private fullUs = 0;
  private lookedUs = Number.NEGATIVE_INFINITY;

  constructor(
    dir: string,
    name: string,
    private readonly clock: BucketClock,
  ) {
    this.bucket = new RateBucket(dir, name, clock, false);
  }

  /** Ms until the next start; 0 when it may be now. @throws a system error */
  waitMs(rate: Rate): number {
    if (this.clock.nowUs() - this.lookedUs >= LOOK_US) {
      const readUs = this.bucket.read(rate);
      this.lookedUs = this.clock.nowUs();
      this.fullUs = Math.max(readUs, Math.min(this.fullUs, emptyUs(rate, this.lookedUs)));
    }
    // The clock is read again after the file, because a new bucket allows starts only from the time when it was made.
    const nowUs = this.clock.nowUs();
    return allows(rate, this.fullUs, nowUs) ? 0 : waitMsOf(rate, this.fullUs, nowUs);
  }

  noteStart(rate: Rate): void {
    this.fullUs = afterStart(rate, this.fullUs, this.clock.nowUs());
  }
}
