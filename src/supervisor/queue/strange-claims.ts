/** Tasks that a process has claimed which is no worker that we know: a run that waits for them says so. */
import type { Environment } from "../environment/environment.ts";

/** It says so after this time (ms). A dead process is noticed before that. */
const STRANGE_MS = 2000;

export class StrangeClaims {
  /** Since when each id is claimed so (monotonic ms). */
  private since = new Map<string, number>();

  constructor(private readonly env: Pick<Environment, "trays" | "alerts">) {}

  update(ids: Iterable<string>): void {
    const nowMs = this.env.trays.clock.monotonicMs();
    this.since = new Map([...ids].map((id) => [id, this.since.get(id) ?? nowMs]));
  }

  /** Tells of each claim once. */
  tell(): void {
    const nowMs = this.env.trays.clock.monotonicMs();
    for (const [id, sinceMs] of this.since)
      if (nowMs - sinceMs >= STRANGE_MS)
        this.env.alerts.report(
          `strange:${id}`,
          `this run waits for ${id}, which a process has claimed that is no worker of this pool: it goes on when ${id} has ended, or is taken back after lease_ttl_ms without a sign of life`,
          Number.POSITIVE_INFINITY,
        );
  }
}
