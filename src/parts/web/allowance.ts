/** Limits the time that a job may use to a share of a core, with some time saved for when something happens. Pure. */
export class Allowance {
  private readonly share: number;
  private readonly savedMsMax: number;
  private savedMs: number;
  private atMs: number;

  /** @param share of a core @param savedMsMax so much is saved while nothing happens @param nowMs of a clock that is never set back */
  constructor(share: number, savedMsMax: number, nowMs: number) {
    this.share = share;
    this.savedMsMax = savedMsMax;
    this.savedMs = savedMsMax;
    this.atMs = nowMs;
  }

  use(ms: number, nowMs: number): void {
    this.fill(nowMs);
    this.savedMs -= ms;
  }

  /** When at least this part of what can be saved is there (ms from now); 0: it is. */
  readyInMs(part: number, nowMs: number): number {
    this.fill(nowMs);
    const missingMs = part * this.savedMsMax - this.savedMs;
    return missingMs <= 0 ? 0 : missingMs / this.share;
  }

  private fill(nowMs: number): void {
    this.savedMs = Math.min(this.savedMsMax, this.savedMs + (nowMs - this.atMs) * this.share);
    this.atMs = nowMs;
  }
}
