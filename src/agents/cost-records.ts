/** The costs of runs of coding agents: the lines of `analytics/costs.<day>.jsonl`, and how they are read. Pure. */

import type { Price } from "../core/settings.ts";
import {
  type Is,
  isNumber,
  isText,
  type Of,
  optional,
  orElse,
  orNull,
  shape,
} from "../core/shape.ts";
import type { Usage } from "./stream/facts.ts";

/** What one run used in one session. A reader counts a run of a session once. */
const isWhole: Is<number> = (value): value is number => Number.isSafeInteger(value);
/** Undefined when the line is no record of costs. */
export const readCostRecord = shape({
  /** Unix seconds. */
  at: isWhole,
  task_id: isText,
  run: isText,
  /** The lease of the run, because runs of different processes may have had the same folder. Missing in records of earlier versions. */
  lease: optional(isText),
  /** The plan whose node it worked on, by name. */
  plan: optional(isText),
  /** Missing without a group, and in records of earlier versions. */
  group: optional(isText),
  agent: isText,
  kind: orElse(isText, ""),
  account: isText,
  model: orElse(orNull(isText), null),
  session_id: orElse(orNull(isText), null),
  input_tokens: isWhole,
  cached_input_tokens: isWhole,
  output_tokens: isWhole,
  /** Millionths of a US dollar; null when the program gives no price. */
  cost_usd_micro: orElse(orNull(isNumber), null),
  /** Turns of the model that ended, and how long the run took. Missing in records of earlier versions. */
  turns: optional(isNumber),
  duration_ms: optional(isNumber),
  /** completed, failed, deferred, released, lost_session, or killed. */
  outcome: isText,
});
export type CostRecord = Of<typeof readCostRecord>;

/** Whether it has used anything. A run that used nothing and has not completed is not booked. */
export function hasUsed(record: CostRecord): boolean {
  return record.input_tokens + record.output_tokens + (record.cost_usd_micro ?? 0) > 0;
}

/** A key that is the same in all lines about one run in one session. */
export function costKeyOf(record: CostRecord): string {
  return `${record.lease ?? record.run} ${record.session_id}`;
}

/** The cost by the prices in the settings (millionths of a US dollar); undefined when they have no price for the model. */
export function priceOf(
  model: string | null,
  used: Usage,
  prices: Readonly<Record<string, Price>>,
): number | undefined {
  const price = model === null ? undefined : prices[model];
  if (price === undefined) return undefined;
  const { input_usd: input, cached_input_usd: cached = input, output_usd: output } = price;
  // A price in dollars for a million tokens is the price in millionths for one token.
  return Math.round(
    (used.inputTokens - used.cachedInputTokens) * input +
      used.cachedInputTokens * cached +
      used.outputTokens * output,
  );
}

/** The cost (millionths of a US dollar) as the program reports it or the settings say; undefined when neither knows. */
export function priceOfRecord(
  record: CostRecord,
  prices: Readonly<Record<string, Price>>,
): number | undefined {
  const used = {
    inputTokens: record.input_tokens,
    cachedInputTokens: record.cached_input_tokens,
    outputTokens: record.output_tokens,
    costUsdMicro: null,
  };
  return record.cost_usd_micro ?? priceOf(record.model, used, prices);
}
