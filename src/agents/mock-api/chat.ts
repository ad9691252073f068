/** The API of chat completions, as far as programs use it that are compatible with OpenAI's. */
import {
  type Asked,
  callsOf,
  type Format,
  halves,
  newId,
  type Refusal,
  type StreamEvent,
  textOf,
  usageOf,
} from "./format.ts";
import { openAiError } from "./responses.ts";
import type { Step } from "./script.ts";

interface Message {
  role: string;
  content?: string | { text?: string }[] | null;
  tool_calls?: { function?: { name?: string } }[];
}

function read(_path: string, body: Record<string, unknown>): Asked {
  const messages = (body["messages"] ?? []) as Message[];
  const tools = (body["tools"] ?? []) as { function?: { name?: string } }[];
  return {
    // Titles and summaries are asked for without tools.
    kind: tools.length === 0 ? "side" : "turn",
    model: (body["model"] ?? "") as string,
    isStream: body["stream"] === true,
    texts: messages.filter(({ role }) => role === "user").map(textsOf),
    lines: messages.map(lineOf),
    tools: tools.map((tool) => tool.function?.name ?? ""),
  };
}

const textsOf = ({ content }: Message): string =>
  typeof content === "string" ? content : (content ?? []).map(({ text }) => text ?? "").join("\n");

function lineOf(message: Message): string {
  if (message.role === "tool") return `[result ${JSON.stringify(message.content)}]`;
  const calls = (message.tool_calls ?? []).map((call) => `[call ${call.function?.name ?? ""}]`);
  return `${message.role}: ${[textsOf(message), ...calls].filter(Boolean).join(" | ")}`;
}

function toolCallsOf(step: Step, { tools }: Asked): Record<string, unknown>[] {
  return callsOf(step, tools).map(({ name, input }, index) => ({
    index,
    id: newId("call_"),
    type: "function",
    function: { name, arguments: JSON.stringify(input) },
  }));
}

function usageIn(step: Step): object {
  const usage = usageOf(step);
  // This API counts cached input and reasoning as parts of the whole.
  const input = usage.input + usage.cachedInput;
  return {
    prompt_tokens: input,
    completion_tokens: usage.output,
    total_tokens: input + usage.output,
    prompt_tokens_details: { cached_tokens: usage.cachedInput },
    completion_tokens_details: { reasoning_tokens: usage.reasoning },
  };
}

const about = (asked: Asked): object => ({
  id: newId("chatcmpl-"),
  created: Math.floor(Date.now() / 1000),
  model: asked.model,
});

const reasonOf = (calls: readonly unknown[]): string => (calls.length > 0 ? "tool_calls" : "stop");

function plain(step: Step, asked: Asked): Record<string, unknown> {
  const calls = toolCallsOf(step, asked);
  const message = {
    role: "assistant",
    content: textOf(step) ?? null,
    ...(step.think === undefined ? {} : { reasoning_content: step.think }),
    ...(calls.length === 0 ? {} : { tool_calls: calls }),
  };
  return {
    ...about(asked),
    object: "chat.completion",
    choices: [{ index: 0, message, finish_reason: reasonOf(calls) }],
    usage: usageIn(step),
  };
}

/** The usage comes last, in a piece without choices, whether it was asked for or not. */
function events(step: Step, asked: Asked): StreamEvent[] {
  const shared = { ...about(asked), object: "chat.completion.chunk" };
  const calls = toolCallsOf(step, asked);
  const piece = (delta: object, finish_reason: string | null = null): StreamEvent => ({
    ...shared,
    choices: [{ index: 0, delta, finish_reason }],
  });
  return [
    piece({ role: "assistant", content: "" }),
    ...(step.think === undefined ? [] : halves(step.think)).map((text) =>
      piece({ reasoning_content: text }),
    ),
    ...halves(textOf(step) ?? "").map((content) => piece({ content })),
    ...calls.map((call) => piece({ tool_calls: [call] })),
    piece({}, reasonOf(calls)),
    { ...shared, choices: [], usage: usageIn(step) },
  ];
}

function refusal(step: Step): Refusal {
  const status = step.status ?? 429;
  return { status, headers: {}, body: step.body ?? openAiError(status) };
}

export const chatFormat: Format = {
  name: "chat",
  read,
  events,
  lastLine: "data: [DONE]\n\n",
  plain,
  refusal,
  errorEvent: ({ body }) => body as StreamEvent,
  windowHeaders: () => ({}),
};
