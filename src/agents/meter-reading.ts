/** What the meter of one run has seen so far: tokens of each model, and whether the service refuses the run. */
import type { Price } from "../core/settings.ts";
import { priceOf } from "./cost-records.ts";
import type { MeterNote, Refusal } from "./meter.ts";
import type { Usage } from "./stream/facts.ts";
import { addUsage, NO_USAGE, tokensOf } from "./stream/run-state.ts";

/**
 * How long a program may be refused for its quota before it is stopped (ms). Some programs wait for it in silence, or ask again and again.
 * One that knows better ends by itself before that.
 */
const PATIENCE_MS = { isNear: 60_000, isFar: 10_000 } as const;

export class MeterReading {
  /** Why the service refuses the run; undefined when its last request to a model was answered. */
  refused: (Refusal & { sinceMs: number }) | undefined;
  hasAnswered = false;
  /** An answer said nothing about its tokens. */
  private hasUncounted = false;
  private readonly byModel = new Map<string, Usage>();

  /** @param nowMs epoch ms */
  take(note: MeterNote, nowMs: number): void {
    if (note.note === "used")
      this.byModel.set(note.model, addUsage(this.byModel.get(note.model) ?? NO_USAGE, note.usage));
    else if (note.note === "answered") {
      this.refused = undefined;
      this.hasAnswered = true;
      this.hasUncounted ||= !note.isCounted;
    } else if (note.note === "refused") {
      const isSame = this.refused?.fault === note.fault;
      this.refused = { ...note, sinceMs: isSame ? (this.refused?.sinceMs ?? nowMs) : nowMs };
    }
  }

  /** Undefined before the first answer with tokens. The price is null unless the prices of all its models are known. */
  used(prices: Readonly<Record<string, Price>>): Usage | undefined {
    if (this.byModel.size === 0) return undefined;
    const parts = [...this.byModel];
    const micros = parts.map(([model, usage]) => priceOf(model, usage, prices));
    const costUsdMicro = micros.includes(undefined)
      ? null
      : micros.reduce<number>((sum, micro) => sum + (micro ?? 0), 0);
    return { ...parts.map(([, usage]) => usage).reduce(addUsage), costUsdMicro };
  }

  /** The model with the most tokens. */
  get model(): string | null {
    const [first] = [...this.byModel].sort(([, a], [, b]) => tokensOf(b) - tokensOf(a));
    return first?.[0] || null;
  }

  /** Why its costs are not all known; undefined when they are. @param reported the tokens that the program itself reports */
  explainGap(reported: number): string | undefined {
    if (this.hasUncounted)
      return "some of its answers do not say how many tokens they took: a program that asks for chat completions in a stream must set stream_options.include_usage";
    const isPassedBy = !this.hasAnswered && this.refused === undefined && reported > 0;
    return isPassedBy ? "it has used tokens, and no request came through its meter" : undefined;
  }

  /** Why the run should not wait for its quota any longer. */
  explainLimit(nowMs: number): string | undefined {
    const { refused } = this;
    if (refused?.fault !== "limit") return undefined;
    const isFar = (refused.resetsAtMs ?? 0) - refused.sinceMs > PATIENCE_MS.isNear;
    const patienceMs = isFar ? PATIENCE_MS.isFar : PATIENCE_MS.isNear;
    return nowMs - refused.sinceMs >= patienceMs ? refused.text : undefined;
  }
}
