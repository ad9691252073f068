/** The tokens of an answer, in the forms of the services, however it comes in pieces. */
import { describe, expect, it } from "vitest";
import type { Usage } from "../../../src/agents/stream/facts.ts";
import { addUsage, NO_USAGE } from "../../../src/agents/stream/run-state.ts";
import { AnswerReader } from "../../../src/parts/meter/answer-reader.ts";

const event = (value: unknown): string => `data: ${JSON.stringify(value)}\n\n`;
const counted = (inputTokens: number, cachedInputTokens: number, outputTokens: number): Usage => ({
  inputTokens,
  cachedInputTokens,
  outputTokens,
  costUsdMicro: null,
});

/** @param size of the pieces in which it comes (bytes) */
function read(text: string, isStream: boolean, size: number) {
  let used = NO_USAGE;
  let model = "";
  const reader = new AnswerReader({
    isStream,
    onUsed(more, named) {
      used = addUsage(used, more);
      model = named;
    },
  });
  const bytes = Buffer.from(text);
  for (let at = 0; at < bytes.length; at += size) reader.take(bytes.subarray(at, at + size));
  reader.end();
  return { used, model, error: reader.error?.type };
}

const CHAT = { model: "c", choices: [{ index: 0, delta: { content: "ü 😀" } }] };
const GEMINI = {
  modelVersion: "g",
  usageMetadata: {
    promptTokenCount: 40,
    cachedContentTokenCount: 8,
    candidatesTokenCount: 5,
    thoughtsTokenCount: 2,
  },
};
const ANSWERS: readonly (readonly [string, string, boolean, string, Usage])[] = [
  [
    "messages, a stream",
    event({
      type: "message_start",
      message: {
        model: "a",
        usage: {
          input_tokens: 10,
          cache_read_input_tokens: 5,
          cache_creation_input_tokens: 3,
          output_tokens: 1,
        },
      },
    }) +
      event({ type: "content_block_delta", delta: { text: '"usage": {"output_tokens": 99}' } }) +
      event({ type: "message_delta", usage: { output_tokens: 7 } }),
    true,
    "a",
    counted(18, 5, 7),
  ],
  [
    "messages, one body",
    JSON.stringify({ model: "a", usage: { input_tokens: 10, output_tokens: 7 } }),
    false,
    "a",
    counted(10, 0, 7),
  ],
  [
    "responses, a stream",
    event({ type: "response.created", response: { model: "r", usage: null } }) +
      event({
        type: "response.completed",
        response: {
          model: "r",
          usage: {
            input_tokens: 30,
            input_tokens_details: { cached_tokens: 20 },
            output_tokens: 4,
          },
        },
      }),
    true,
    "r",
    counted(30, 20, 4),
  ],
  [
    "chat completions, a stream",
    `${event(CHAT)}${event({
      ...CHAT,
      choices: [],
      usage: {
        prompt_tokens: 9,
        completion_tokens: 3,
        prompt_tokens_details: { cached_tokens: 2 },
      },
    })}data: [DONE]\n\n`,
    true,
    "c",
    counted(9, 2, 3),
  ],
  [
    "chat completions, with the members of another API beside its own",
    JSON.stringify({
      model: "c",
      usage: {
        prompt_tokens: 1000,
        completion_tokens: 20,
        input_tokens: 1000,
        output_tokens: 20,
        cache_read_input_tokens: 800,
        prompt_tokens_details: { cached_tokens: 800 },
      },
    }),
    false,
    "c",
    counted(1000, 800, 20),
  ],
  [
    "chat completions without tokens",
    `${event(CHAT)}data: [DONE]\r\n\r\n`,
    true,
    "",
    counted(0, 0, 0),
  ],
  [
    "Gemini, a stream that counts on",
    event({ ...GEMINI, usageMetadata: { promptTokenCount: 40, candidatesTokenCount: 1 } }) +
      event(GEMINI),
    true,
    "g",
    counted(40, 8, 7),
  ],
  ["Gemini, a list", JSON.stringify([GEMINI, GEMINI]), false, "g", counted(40, 8, 7)],
  ["a count of tokens", JSON.stringify({ input_tokens: 12 }), false, "", counted(0, 0, 0)],
  ["no JSON", "<html>usage</html>", false, "", counted(0, 0, 0)],
  [
    "impossible counts",
    JSON.stringify({ usage: { input_tokens: -5, output_tokens: 1e30 } }),
    false,
    "",
    counted(0, 0, 0),
  ],
];

describe.each([1, 7, 100_000])("in pieces of %i bytes", (size) => {
  it.each(ANSWERS)("are those that it reports: %s", (_, text, isStream, model, used) => {
    expect(read(text, isStream, size)).toMatchObject({ used, model });
  });

  it("tells an error that comes within a stream", () => {
    const error = { type: "error", error: { type: "overloaded_error", message: "Overloaded" } };
    expect(read(`event: error\n${event(error)}`, true, size).error).toBe("overloaded_error");
  });
});
