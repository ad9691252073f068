/** Tokens and money in a result of Claude Code. */
import type { Fact, Usage } from "../../agents/stream/facts.ts";
import { readCount, readUsdMicro } from "../../agents/stream/read-values.ts";
import { addUsage } from "../../agents/stream/run-state.ts";
import { isObject } from "../../core/json-object.ts";
import { type Json, objectAt, textAt } from "./fields.ts";

/** The costs to book, and the sums over the session. Older versions report only the sums. */
export function usageOf(result: Json): Fact[] {
  const facts: Fact[] = [];
  const part = objectAt(result, "model_usage_since_last_result");
  if (part !== undefined) facts.push({ fact: "usage", of: "part", usage: sumOf(part, undefined) });
  const session = objectAt(result, "modelUsage") ?? {};
  const costUsdMicro = readUsdMicro(result["total_cost_usd"]) ?? 0;
  // A run that did not reach its session reports 0, which is no sum.
  if (Object.keys(session).length > 0 || costUsdMicro > 0)
    facts.push({ fact: "usage", of: "session", usage: sumOf(session, costUsdMicro) });
  return facts;
}

/** The costs of the open turn so far. Several lines may report one message, each with the sum of that message. */
export class OpenTurn {
  private readonly byMessage = new Map<string, Usage>();

  /** @param message of a line of type "assistant" */
  add(message: Json): Fact[] {
    const id = textAt(message, "id");
    const told = objectAt(message, "usage");
    if (id === undefined || told === undefined) return [];
    const cached = countAt(told, "cache_read_input_tokens");
    const written = countAt(told, "cache_creation_input_tokens");
    this.byMessage.set(id, {
      inputTokens: countAt(told, "input_tokens") + cached + written,
      cachedInputTokens: cached,
      outputTokens: countAt(told, "output_tokens"),
      costUsdMicro: null,
    });
    return [{ fact: "usage", of: "turn", usage: [...this.byMessage.values()].reduce(addUsage) }];
  }

  /** Called at the end of a turn. Its last line has the sums, so the counts of its messages are no longer needed. */
  end(): void {
    this.byMessage.clear();
  }
}

/** 0 when it is missing. */
function countAt(from: Json, key: string): number {
  return readCount(from[key]) ?? 0;
}

/** @param costUsdMicro the cost of all models; undefined for the sum of their costs */
function sumOf(models: Json, costUsdMicro: number | undefined): Usage {
  let [inputTokens, cachedInputTokens, outputTokens, modelsUsdMicro] = [0, 0, 0, 0];
  for (const model of Object.values(models).filter(isObject)) {
    const cached = countAt(model, "cacheReadInputTokens");
    const written = countAt(model, "cacheCreationInputTokens");
    // Input counts all tokens that the model has read, as with other kinds. This program reports cached ones apart.
    inputTokens += countAt(model, "inputTokens") + cached + written;
    cachedInputTokens += cached;
    outputTokens += countAt(model, "outputTokens");
    modelsUsdMicro += readUsdMicro(model["costUSD"]) ?? 0;
  }
  return {
    inputTokens,
    cachedInputTokens,
    outputTokens,
    costUsdMicro: costUsdMicro ?? modelsUsdMicro,
  };
}
