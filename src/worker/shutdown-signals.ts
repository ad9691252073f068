/**
 * Recognizes failures that were caused by a signal to all processes, as when the machine shuts down. Such a failure does not use up
 * the attempt.
 */
import type { Clock } from "../core/clock.ts";
import type { Attempt } from "./runner.ts";

/**
 * How long a failure is not judged after a signal from outside (ms). When all processes got the signal, as at shutdown, the
 * supervisor tells this worker in that time to give back its tasks, and the failure uses up no attempt.
 */
const SHUTDOWN_MS = 1000;
/** The signals that a system sends to all processes when it shuts down. */
const SHUTDOWN_SIGNALS: ReadonlySet<string> = new Set(["SIGTERM", "SIGINT", "SIGHUP"]);
/** How long to wait for our own signal after a program ended by such a signal (ms): the system delivers them in any order. */
const OWN_SIGNAL_MS = 200;

export class ShutdownSignals {
  /** Until when a failure may be due to a signal to all processes (monotonic ms); 0: this process got no signal. */
  private untilMs = 0;
  /** Attempts that have already waited for our own signal. */
  private readonly awaited = new WeakSet<Attempt>();

  constructor(private readonly clock: Clock) {}

  /** Call when this process gets a signal from outside. */
  note(): void {
    this.untilMs = this.clock.monotonicMs() + SHUTDOWN_MS;
  }

  /** Judges an attempt that has ended; it may turn its failure into a release. @returns ms to wait before it is judged again */
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
