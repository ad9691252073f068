/** Fencing of running work: checks now and then whether the leases of running attempts are still ours. */
import { isHeld } from "../mailbox/claim/claim.ts";
import type { Trays } from "../mailbox/files/trays.ts";
import type { Attempt } from "./runner.ts";

/** How often it checks (ms). */
const LOOK_MS = 2000;

export class LeaseWatch {
  private readonly everyMs: number;
  /** Set while an attempt runs. */
  private timer: NodeJS.Timeout | undefined;

  /** @param onLost called when the claimed name is gone: the attempt must end */
  constructor(
    private readonly trays: Trays,
    heartbeatMs: number,
    private readonly running: ReadonlyMap<string, Attempt>,
    private readonly onLost: (attempt: Attempt) => void,
  ) {
    this.everyMs = Math.min(heartbeatMs, LOOK_MS);
  }

  /** Starts to watch; it stops when no attempt runs any more. */
  start(): void {
    this.timer ??= setInterval(() => this.look(), this.everyMs);
  }

  stop(): void {
    clearInterval(this.timer);
    this.timer = undefined;
  }

  private look(): void {
    if (this.running.size === 0) this.stop();
    for (const attempt of this.running.values()) if (this.hasLost(attempt)) this.onLost(attempt);
  }

  /** A disk that cannot be read now proves nothing. */
  private hasLost({ claim }: Attempt): boolean {
    try {
      return !isHeld(this.trays, claim);
    } catch {
      return false;
    }
  }
}
