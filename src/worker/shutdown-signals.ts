/**
 * Tells a failure of its own from one that a signal to all processes caused, as when the machine goes down: the latter does not use
 * up the attempt.
 */
import type { Clock } from "../core/clock.ts";
import type { Attempt } from "./runner.ts";

/**
 * After a signal from outside a failure waits so long (ms): where all processes got one, as when the machine goes down, the
 * supervisor has us give back what runs, and what failed of that signal has not used up its attempt.
 */
const SHUTDOWN_MS = 1000;
/** What a system sends to all processes when it goes down. */
const SHUTDOWN_SIGNALS: ReadonlySet<string> = new Set(["SIGTERM", "SIGINT", "SIGHUP"]);
/** A program's end by such a signal may be known before our own signal is: the system delivers them in no order (ms). */
const OWN_SIGNAL_MS = 200;

export class ShutdownSignals {
  private readonly clock: Clock;
  /** Monotonic ms until which a failure may come of a signal to all; 0: this process got none. */
  private untilMs = 0;
  /** Attempts that have waited for our own signal. */
  private readonly awaited = new WeakSet<Attempt>();

  constructor(clock: Clock) {
    this.clock = clock;
  }

  /** This process got a signal from outside. */
  note(): void {
    this.untilMs = this.clock.monotonicMs() + SHUTDOWN_MS;
  }

  /** Judges an attempt that has ended, and may turn its failure into a release. @returns ms to wait before it is judged again */
  judge(attempt: Attempt): number {
    const { outcome, stop } = attempt;
    if (outcome?.kind !== "failed") return 0;
    if (this.untilMs === 0) {
      const mayBeOfSignal = stop.reason === undefined && SHUTDOWN_SIGNALS.has(outcome.signal ?? "");
      if (!mayBeOfSignal || this.awaited.has(attempt)) return 0;
      this.awaited.add(attempt);
      return OWN_SIGNAL_MS;
    }
    if (stop.reason === "stop") {
      attempt.outcome = { kind: "released", message: "it was stopped with the machine" };
      return 0;
    }
    return Math.max(0, this.untilMs - this.clock.monotonicMs());
  }
}
