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
/** A program that reports more than the meter has seen by this factor has asked beside it. Both may round, or count a cut answer. */
const BESIDE_FACTOR = 1.2;

interface Asked {
  /** The size of all requests (bytes). */
  size: number;
  /** Why its last request was refused; undefined when it was answered. */
  refused: (Refusal & { sinceMs: number }) | undefined;
}

export class MeterReading {
  hasAnswered = false;
  /** An answer said nothing about its tokens. */
  private hasUncounted = false;
  /** Requests without an end. */
  private openCount = 0;
  /** By service and model. */
  private readonly asked = new Map<string, Asked>();
  private readonly byModel = new Map<string, Usage>();

  /** @param nowMs epoch ms */
  take(note: MeterNote, nowMs: number): void {
    if (note.note === "window") return;
    const asked = this.asked.get(note.of) ?? { size: 0, refused: undefined };
    this.asked.set(note.of, asked);
    switch (note.note) {
      case "asked":
        asked.size += note.size;
        this.openCount++;
        return;
      case "used":
        this.byModel.set(
          note.model,
          addUsage(this.byModel.get(note.model) ?? NO_USAGE, note.usage),
        );
        return;
      case "answered":
        asked.refused = undefined;
        this.hasAnswered = true;
        this.hasUncounted ||= !note.isCounted;
        break;
      case "refused": {
        const { of: _of, note: _note, ...refusal } = note;
        const isSame = asked.refused?.fault === note.fault;
        const sinceMs = isSame ? (asked.refused?.sinceMs ?? nowMs) : nowMs;
        asked.refused = { ...refusal, sinceMs };
        break;
      }
      default:
    }
    this.openCount--;
  }

  /** Whether it is the model that does the work: its requests carry the conversation. Side requests, such as for a title, are small. */
  isMain(of: string): boolean {
    const size = this.asked.get(of)?.size ?? 0;
    return [...this.asked.values()].every((one) => one.size <= size);
  }

  /** Why the service refuses the run; undefined when the last request to the model that does the work was answered. */
  get refused(): Asked["refused"] {
    return [...this.asked].find(([of]) => this.isMain(of))?.[1].refused;
  }

  get hasAsked(): boolean {
    return this.asked.size > 0;
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

  /** Whether a program that reports these tokens has also asked beside its meter. */
  isPassedBy(reported: Usage): boolean {
    const seen = [...this.byModel.values()].reduce((sum, usage) => sum + tokensOf(usage), 0);
    return tokensOf(reported) > seen * BESIDE_FACTOR;
  }

  /** The model with the most tokens. */
  get model(): string | null {
    const [first] = [...this.byModel].sort(([, a], [, b]) => tokensOf(b) - tokensOf(a));
    return first?.[0] || null;
  }

  /** Why its costs are not all known; undefined when they are. @param reported what the program itself reports */
  explainGap(reported: Usage): string | undefined {
    if (this.hasUncounted)
      return "some of its answers do not say how many tokens they took: a program that asks for chat completions in a stream must set stream_options.include_usage";
    return this.isPassedBy(reported)
      ? "it has used more tokens than came through its meter, so it also asks a service at another address"
      : undefined;
  }

  /** Why the run should not wait for its quota any longer. */
  explainLimit(nowMs: number): string | undefined {
    const { refused } = this;
    // Another request may still be answered.
    if (refused?.fault !== "limit" || this.openCount > 0) return undefined;
    const isFar = (refused.resetsAtMs ?? 0) - refused.sinceMs > PATIENCE_MS.isNear;
    const patienceMs = isFar ? PATIENCE_MS.isFar : PATIENCE_MS.isNear;
    return nowMs - refused.sinceMs >= patienceMs ? refused.text : undefined;
  }
}
