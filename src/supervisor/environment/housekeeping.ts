/** A part that tidies up a few times a day, beside all tasks. It does nothing in between, so a plain pool pays nothing for it. */
import { messageOf } from "../../core/errors.ts";
import type { Environment } from "./environment.ts";
import type { Part } from "./part.ts";
import { NEVER, type Tick } from "./service.ts";

/** The delay after the start, and the time between two rounds (ms). */
const FIRST_MS = 60_000;
const PERIOD_MS = 6 * 60 * 60_000;
/** If the wall clock moved this much against the monotonic one, it is not trusted and nothing is removed (ms). */
const CLOCK_DRIFT_MAX_MS = 60 * 60_000;

export class Housekeeping implements Part {
  private readonly clockOffsetMs: number;
  private atMs: number | undefined;
  private busy: Promise<void> | undefined;

  constructor(
    private readonly env: Pick<Environment, "alerts" | "trays" | "wake">,
    /** Names the work for people when it fails, after "cannot". */
    private readonly what: string,
    private readonly tidy: (wallMs: number) => Promise<void>,
  ) {
    this.clockOffsetMs = this.offsetMs();
  }

  work({ nowMs }: Tick): void {
    this.atMs ??= nowMs + FIRST_MS;
    if (this.busy !== undefined || nowMs < this.atMs) return;
    this.atMs = nowMs + PERIOD_MS;
    if (Math.abs(this.offsetMs() - this.clockOffsetMs) > CLOCK_DRIFT_MAX_MS) return;
    this.busy = this.tidy(this.env.trays.clock.wallMs())
      .catch((error: unknown) => {
        this.env.alerts.report("housekeeping", `cannot ${this.what}: ${messageOf(error)}`);
      })
      .finally(() => {
        this.busy = undefined;
        this.env.wake();
      });
  }

  nextMs(): number {
    return this.busy === undefined ? (this.atMs ?? 0) : NEVER;
  }

  async finish(): Promise<void> {
    await this.busy;
  }

  private offsetMs(): number {
    const { clock } = this.env.trays;
    return clock.wallMs() - clock.monotonicMs();
  }
}
