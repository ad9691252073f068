/** When a dead worker process is replaced. Pure: a storm of deaths must not become a storm of starts. */

const FIRST_DELAY_MS = 1000;
const MAX_DELAY_MS = 30_000;
/** So many deaths in a row without any progress open the circuit breaker. */
export const BREAKER_DEATHS = 8;

/** Counts deaths without progress in between. A worker that ran for a while, or settled something, was healthy. */
export class RestartPolicy {
  private fruitlessDeaths = 0;

  /**
   * @param wasHealthy whether the process that died had achieved anything
   * @returns ms to wait before the next start
   */
  onDeath(wasHealthy: boolean): number {
    this.fruitlessDeaths = wasHealthy ? 0 : this.fruitlessDeaths + 1;
    if (this.fruitlessDeaths <= 1) return 0;
    return Math.min(FIRST_DELAY_MS * 2 ** (this.fruitlessDeaths - 2), MAX_DELAY_MS);
  }

  get isBreakerOpen(): boolean {
    return this.fruitlessDeaths >= BREAKER_DEATHS;
  }

  onProgress(): void {
    this.fruitlessDeaths = 0;
  }
}
