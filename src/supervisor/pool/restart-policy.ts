/** Decides when a dead worker process is replaced, so that many deaths do not lead to as many starts. Pure. */

const FIRST_DELAY_MS = 1000;
const MAX_DELAY_MS = 30_000;
/** This many deaths in a row without any progress open the circuit breaker. */
export const BREAKER_DEATHS = 8;

/**
 * `healthy`: it had settled a task, or lived for a while. `killed`: it was ready for work and was ended from outside, which is not
 * its fault. Its successor comes soon and the breaker stays closed, but a repeated kill causes a pause, because a task may be the
 * reason. `fruitless`: it ended by itself, because memory was short, or before it was ready.
 */
export type Death = "healthy" | "killed" | "fruitless";

/** Counts deaths without progress in between. */
export class RestartPolicy {
  private fruitlessDeaths = 0;
  private wasKilled = false;

  /** @returns ms to wait before the next start */
  onDeath(death: Death): number {
    if (death === "killed") {
      const delayMs = this.wasKilled || this.fruitlessDeaths > 0 ? FIRST_DELAY_MS : 0;
      this.wasKilled = true;
      return delayMs;
    }
    this.wasKilled = false;
    this.fruitlessDeaths = death === "healthy" ? 0 : this.fruitlessDeaths + 1;
    if (this.fruitlessDeaths <= 1) return 0;
    return Math.min(FIRST_DELAY_MS * 2 ** (this.fruitlessDeaths - 2), MAX_DELAY_MS);
  }

  get isBreakerOpen(): boolean {
    return this.fruitlessDeaths >= BREAKER_DEATHS;
  }

  onProgress(): void {
    this.fruitlessDeaths = 0;
    this.wasKilled = false;
  }
}
