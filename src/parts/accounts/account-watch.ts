/** The gate of one account in a supervisor. After a limit tasks start one by one, each after the previous one has its answer. */
import type { GateFile } from "../../agents/accounts/gate-file.ts";
import type { Entry } from "../../agents/accounts/gate-rules.ts";
import type { Clock } from "../../core/clock.ts";

/** How often the file is read (ms). */
export const LOOK_MS = 500;
/** A task that was let go holds up the next one for no longer than this (ms). */
const ARRIVAL_MS_MAX = 10_000;

export class AccountWatch {
  private entry: Entry;
  private lookedAtMs: number;
  /** The state of the gate when the last task was let go. Until that state changes, the task is still on its way. */
  private letGo: { gate: string; atMs: number } | undefined;

  constructor(
    private readonly file: GateFile,
    private readonly clock: Clock,
  ) {
    this.entry = file.look(clock.wallMs());
    this.lookedAtMs = clock.monotonicMs();
  }

  /** Whether all runs of the account may start at once. */
  get isFree(): boolean {
    const { may, gate } = this.look();
    return may && gate.status === "open";
  }

  /** The gate, read again at most every `LOOK_MS`. */
  look(): Entry {
    const nowMs = this.clock.monotonicMs();
    if (nowMs - this.lookedAtMs >= LOOK_MS) {
      this.lookedAtMs = nowMs;
      this.entry = this.file.look(this.clock.wallMs());
    }
    return this.entry;
  }

  mayStart(): boolean {
    const { may, gate } = this.look();
    if (!may || gate.status === "open") return may;
    const { letGo } = this;
    return (
      letGo === undefined ||
      letGo.gate !== stampOf(this.entry) ||
      this.lookedAtMs - letGo.atMs >= ARRIVAL_MS_MAX
    );
  }

  noteStart(): void {
    if (this.entry.gate.status === "open") return;
    this.letGo = { gate: stampOf(this.entry), atMs: this.clock.monotonicMs() };
  }

  /** When it must look again (monotonic ms). */
  nextMs(): number {
    const isFree = this.entry.may && this.entry.gate.status === "open";
    return isFree ? Number.POSITIVE_INFINITY : this.lookedAtMs + LOOK_MS;
  }
}

/** The state of the gate on disk, without a probe of our own, because `look` does not count one. */
function stampOf({ gate }: Entry): string {
  const { status, until_ms, closed_at_ms, answers } = gate;
  return [status, until_ms, closed_at_ms, answers].join();
}
