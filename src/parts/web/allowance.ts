/** Limits a job to a share of a core. Unused time is saved up to a maximum, for when something happens. Pure. */
export class Allowance {
  private savedMs: number;
  private atMs: number;

  /** @param share part of a core. @param savedMsMax the most time that is saved. @param nowMs monotonic, also in the methods */
  constructor(
    private readonly share: number,
    private readonly savedMsMax: number,
    nowMs: number,
  ) {
    this.savedMs = savedMsMax;
    this.atMs = nowMs;
  }

  use(ms: number, nowMs: number): void {
    this.fill(nowMs);
    this.savedMs -= ms;
  }

  /** Time until at least this part of the maximum is saved (ms); 0 when it is saved now. */
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
