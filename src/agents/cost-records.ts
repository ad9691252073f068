/** The costs of runs of coding agents: the lines of `analytics/costs.<day>.jsonl`, and how they are read. Pure. */
import type { Price } from "../core/settings.ts";
import type { Usage } from "./stream/facts.ts";

/** What one run used in one session. A reader counts a run of a session once. */
export interface CostRecord {
  /** Unix seconds. */
  at: number;
  task_id: string;
  run: string;
  /** The lease of the run, because runs of different processes may have had the same folder. Missing in records of earlier versions. */
  lease?: string;
  /** The plan whose node it worked on, by name. */
  plan?: string;
  agent: string;
  kind: string;
  account: string;
  model: string | null;
  session_id: string | null;
  input_tokens: number;
  cached_input_tokens: number;
  output_tokens: number;
  /** Millionths of a US dollar; null when the program gives no price. */
  cost_usd_micro: number | null;
  /** Turns of the model that ended, and how long the run took. Missing in records of earlier versions. */
  turns?: number;
  duration_ms?: number;
  /** completed, failed, deferred, released, lost_session, or killed. */
  outcome: string;
}

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

/** Decodes a line of the journal; undefined when it is no such record. */
export function readCostRecord(record: Readonly<Record<string, unknown>>): CostRecord | undefined {
  const numbers = ["at", "input_tokens", "cached_input_tokens", "output_tokens"];
  const texts = ["task_id", "run", "agent", "account", "outcome"];
  const isCost =
    numbers.every((name) => Number.isSafeInteger(record[name])) &&
    texts.every((name) => typeof record[name] === "string");
  if (!isCost) return undefined;
  const { model, session_id: session, cost_usd_micro: cost } = record;
  return {
    ...(record as unknown as CostRecord),
    model: typeof model === "string" ? model : null,
    session_id: typeof session === "string" ? session : null,
    cost_usd_micro: typeof cost === "number" && Number.isFinite(cost) ? cost : null,
  };
}
