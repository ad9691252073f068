/**
 * Finds tokens and errors in the answer of a service: a stream of events, or one JSON body. It knows the APIs of Anthropic (messages),
 * OpenAI (responses, chat completions) and Gemini, and finds their members wherever they stand, so that it also reads services that
 * are compatible with one of them.
 */
import { StringDecoder } from "node:string_decoder";
import type { Usage } from "../../agents/stream/facts.ts";
import { isObject, type JsonMembers, membersAt, textOf } from "../../agents/stream/json-values.ts";
import { readCount } from "../../agents/stream/read-values.ts";
import { NO_USAGE } from "../../agents/stream/run-state.ts";

/** A longer line or body is passed on, and not read (characters). */
const TEXT_MAX = 32 * 1024 * 1024;

/** What makes a line worth reading. */
const FIRST = /"(?:usage|usageMetadata|error|model|modelVersion)"/;
const FURTHER = /"(?:usage|usageMetadata|error)"/;
/** The line with which a stream says that it is whole. */
const LAST =
  /^data: ?(?:\[DONE\]|\{"type": ?"(?:message_stop|response\.(?:completed|incomplete))"|.*"finishReason": ?")/;

export interface AnswerParts {
  isStream: boolean;
  /** @param more the tokens since the last call @param model as the answer names it; "" when it does not */
  onUsed: (more: Usage, model: string) => void;
}

export class AnswerReader {
  /** The error that the answer holds, if it does: its type and its text. */
  error: { type: string; text: string; members: JsonMembers } | undefined;
  /** The answer has said that it ends. */
  isComplete = false;
  private readonly decoder = new StringDecoder("utf8");
  private rest = "";
  private isTooLong = false;
  private model = "";
  private told: Usage = NO_USAGE;

  constructor(private readonly deps: AnswerParts) {}

  take(chunk: Buffer): void {
    this.add(this.decoder.write(chunk));
  }

  end(): void {
    this.add(this.decoder.end());
    if (this.deps.isStream) this.readLine(this.rest);
    else this.read(this.rest);
    this.rest = "";
  }

  private add(text: string): void {
    if (this.isTooLong && !this.deps.isStream) return;
    // Only the end of a line can be missing.
    const lines = this.deps.isStream ? text.split("\n") : [text];
    for (const [at, piece] of lines.entries()) {
      if (at > 0) {
        this.readLine(this.rest);
        this.rest = "";
        this.isTooLong = false;
      }
      if (this.rest.length + piece.length > TEXT_MAX) this.isTooLong = true;
      this.rest = this.isTooLong ? "" : this.rest + piece;
    }
  }

  private readLine(line: string): void {
    this.isComplete ||= LAST.test(line);
    // Most lines are pieces of text, and hold nothing of interest.
    const wanted = this.model === "" ? FIRST : FURTHER;
    if (!line.startsWith("data:") || !wanted.test(line)) return;
    this.read(line.slice("data:".length));
  }

  private read(text: string): void {
    let value: unknown;
    try {
      value = JSON.parse(text);
    } catch {
      return;
    }
    // Gemini answers with a list when it is not asked for a stream of events.
    for (const one of Array.isArray(value) ? value : [value])
      if (isObject(one)) this.readObject(one);
  }

  private readObject(json: JsonMembers): void {
    const places = [json, membersAt(json, "message"), membersAt(json, "response")];
    for (const place of places) {
      const error = place["error"];
      if (isObject(error))
        this.error = {
          type: textOf(error["type"]) || textOf(error["code"]) || textOf(error["status"]),
          text: textOf(error["message"]),
          members: error,
        };
      this.model ||= textOf(place["model"]) || textOf(place["modelVersion"]);
      const usage = readUsage(place);
      if (usage !== undefined) this.tell(usage);
    }
  }

  /** A service reports the tokens of an answer several times, each time all of them so far. */
  private tell(usage: Usage): void {
    const now = {
      inputTokens: Math.max(this.told.inputTokens, usage.inputTokens),
      cachedInputTokens: Math.max(this.told.cachedInputTokens, usage.cachedInputTokens),
      outputTokens: Math.max(this.told.outputTokens, usage.outputTokens),
    };
    const { inputTokens, cachedInputTokens, outputTokens } = this.told;
    this.told = { ...now, costUsdMicro: null };
    this.deps.onUsed(
      {
        inputTokens: now.inputTokens - inputTokens,
        cachedInputTokens: now.cachedInputTokens - cachedInputTokens,
        outputTokens: now.outputTokens - outputTokens,
        costUsdMicro: null,
      },
      this.model,
    );
  }
}

/** Undefined when the object reports no tokens. The input counts all tokens that the model has read, also those from its cache. */
function readUsage(json: JsonMembers): Usage | undefined {
  const gemini = json["usageMetadata"];
  if (isObject(gemini))
    return usageOf({
      input: countOf(gemini, "promptTokenCount") + countOf(gemini, "toolUsePromptTokenCount"),
      cached: countOf(gemini, "cachedContentTokenCount"),
      output: countOf(gemini, "candidatesTokenCount") + countOf(gemini, "thoughtsTokenCount"),
    });
  const usage = json["usage"];
  if (!isObject(usage)) return undefined;
  // Chat completions. Some services write the members of other APIs beside these.
  if (usage["prompt_tokens"] !== undefined)
    return usageOf({
      input: countOf(usage, "prompt_tokens"),
      cached: countOf(membersAt(usage, "prompt_tokens_details"), "cached_tokens"),
      output: countOf(usage, "completion_tokens"),
    });
  // Only Anthropic counts the tokens of the cache apart.
  const read = countOf(usage, "cache_read_input_tokens");
  const apart = read + countOf(usage, "cache_creation_input_tokens");
  return usageOf({
    input: countOf(usage, "input_tokens") + apart,
    cached: read + countOf(membersAt(usage, "input_tokens_details"), "cached_tokens"),
    output: countOf(usage, "output_tokens"),
  });
}

function usageOf({ input, cached, output }: Record<"input" | "cached" | "output", number>): Usage {
  return {
    inputTokens: input,
    cachedInputTokens: cached,
    outputTokens: output,
    costUsdMicro: null,
  };
}

function countOf(from: JsonMembers, name: string): number {
  return readCount(from[name]) ?? 0;
}
