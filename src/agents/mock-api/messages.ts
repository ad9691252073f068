/** The Anthropic Messages API, as far as claude uses it. */
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
import type { Step, Windows } from "./script.ts";

interface Block {
  type: string;
  text?: string;
  name?: string;
  content?: unknown;
}

interface Message {
  role: string;
  content: string | Block[];
}

/** How claude begins the request that makes a summary of the conversation. */
const COMPACTION = /create a detailed summary of the conversation/i;

function read(path: string, body: Record<string, unknown>): Asked {
  const messages = (body["messages"] ?? []) as Message[];
  const tools = ((body["tools"] ?? []) as { name?: string }[]).map(({ name }) => name ?? "");
  const texts = messages.filter(({ role }) => role === "user").map(textsOf);
  const kind = kindOf(path, body, texts.at(-1) ?? "");
  return {
    kind,
    model: (body["model"] ?? "") as string,
    isStream: body["stream"] === true && kind !== "count",
    texts,
    lines: messages.map(
      (message) => `${message.role}: ${blocksOf(message).map(lineOf).filter(Boolean).join(" | ")}`,
    ),
    tools,
  };
}

function kindOf(path: string, body: Record<string, unknown>, last: string): Asked["kind"] {
  if (path.endsWith("/count_tokens")) return "count";
  if (COMPACTION.test(last)) return "compaction";
  // claude checks an account's quota by a request for one token, and asks for titles by a request without tools.
  const hasNoTools = Array.isArray(body["tools"]) && body["tools"].length === 0;
  return body["max_tokens"] === 1 || hasNoTools ? "side" : "turn";
}

const blocksOf = ({ content }: Message): Block[] =>
  typeof content === "string" ? [{ type: "text", text: content }] : content;

const textsOf = (message: Message): string =>
  blocksOf(message)
    .map(({ text }) => text ?? "")
    .join("\n");

/** The text that claude puts before the text of its user. */
const REMINDER = /<system-reminder>[\s\S]*?<\/system-reminder>\s*/g;

function lineOf(block: Block): string {
  if (block.text !== undefined) return block.text.replace(REMINDER, "");
  if (block.type === "tool_result") return `[result ${JSON.stringify(block.content)}]`;
  return `[${block.type}${block.name === undefined ? "" : ` ${block.name}`}]`;
}

/** The blocks of an answer. */
function contentOf(step: Step, { tools }: Asked): Record<string, unknown>[] {
  const content: Record<string, unknown>[] = [];
  if (step.think !== undefined)
    content.push({ type: "thinking", thinking: step.think, signature: "bW9jaw==" });
  const text = textOf(step);
  if (text !== undefined) content.push({ type: "text", text });
  for (const call of callsOf(step, tools))
    content.push({ type: "tool_use", id: newId("toolu_"), ...call });
  return content;
}

function plain(step: Step, asked: Asked): Record<string, unknown> {
  if (asked.kind === "count") return { input_tokens: usageOf(step).input };
  const content = contentOf(step, asked);
  const usage = usageOf(step);
  return {
    id: newId("msg_"),
    type: "message",
    role: "assistant",
    model: asked.model,
    content,
    stop_reason: content.some(({ type }) => type === "tool_use") ? "tool_use" : "end_turn",
    stop_sequence: null,
    usage: {
      input_tokens: usage.input,
      cache_creation_input_tokens: usage.cacheWrite,
      cache_read_input_tokens: usage.cachedInput,
      output_tokens: usage.output,
    },
  };
}

function events(step: Step, asked: Asked): StreamEvent[] {
  const message = plain(step, asked);
  const usage = message["usage"] as Record<string, number>;
  const start = {
    ...message,
    content: [],
    stop_reason: null,
    usage: { ...usage, output_tokens: 1 },
  };
  return [
    { type: "message_start", message: start },
    { type: "ping" },
    ...(message["content"] as Record<string, unknown>[]).flatMap(blockEvents),
    {
      type: "message_delta",
      delta: { stop_reason: message["stop_reason"], stop_sequence: null },
      usage,
    },
    { type: "message_stop" },
  ];
}

/** The events of a block: it begins empty, and its text comes in two pieces, so that a cut can fall between them. */
function blockEvents(block: Record<string, unknown>, index: number): StreamEvent[] {
  const deltas: Record<string, unknown>[] = [];
  let empty: Record<string, unknown>;
  if (block["type"] === "tool_use") {
    empty = { ...block, input: {} };
    for (const piece of halves(JSON.stringify(block["input"])))
      deltas.push({ type: "input_json_delta", partial_json: piece });
  } else if (block["type"] === "thinking") {
    empty = { ...block, thinking: "", signature: "" };
    for (const piece of halves(String(block["thinking"])))
      deltas.push({ type: "thinking_delta", thinking: piece });
    deltas.push({ type: "signature_delta", signature: block["signature"] });
  } else {
    empty = { ...block, text: "" };
    for (const piece of halves(String(block["text"])))
      deltas.push({ type: "text_delta", text: piece });
  }
  return [
    { type: "content_block_start", index, content_block: empty },
    ...deltas.map((delta) => ({ type: "content_block_delta", index, delta })),
    { type: "content_block_stop", index },
  ];
}

const ERRORS: Readonly<Record<number, readonly [type: string, message: string]>> = {
  400: ["invalid_request_error", "The request is not valid."],
  401: ["authentication_error", "invalid x-api-key"],
  402: ["billing_error", "Your credit balance is too low to access the Anthropic API."],
  403: ["permission_error", "Your API key does not have permission to use the specified resource."],
  404: ["not_found_error", "model: not found"],
  413: ["request_too_large", "Request exceeds the maximum size"],
  429: [
    "rate_limit_error",
    "This request would exceed your account's rate limit. Please try again later.",
  ],
  500: ["api_error", "Internal server error"],
  529: ["overloaded_error", "Overloaded"],
};

function refusal(step: Step): Refusal {
  const status = step.status ?? 429;
  const [type, message] = ERRORS[status] ?? ["api_error", `Status ${status}`];
  const limit = step.usageLimit;
  const windows =
    step.windows ?? (limit === undefined ? {} : { fiveHour: { used: 1, resetsAt: limit } });
  return {
    status,
    headers: {
      ...(status === 429 || status === 529
        ? { "x-should-retry": String(limit === undefined) }
        : {}),
      ...windowHeaders(windows, limit !== undefined),
    },
    body: step.body ?? { type: "error", error: { type, message }, request_id: newId("req_") },
  };
}

const WINDOWS = [
  ["fiveHour", "5h", "five_hour"],
  ["sevenDay", "7d", "seven_day"],
] as const;

/** The fullest window decides the status of the account. */
function windowHeaders(windows: Windows, isRefused: boolean): Record<string, string> {
  const prefix = "anthropic-ratelimit-unified";
  const headers: Record<string, string> = {};
  let fullest = -1;
  for (const [key, short, claim] of WINDOWS) {
    const window = windows[key];
    if (!window) continue;
    const status = isRefused && window.used >= 1 ? "rejected" : "allowed";
    headers[`${prefix}-${short}-status`] = status;
    headers[`${prefix}-${short}-reset`] = String(window.resetsAt);
    headers[`${prefix}-${short}-utilization`] = String(window.used);
    if (window.used <= fullest) continue;
    fullest = window.used;
    headers[`${prefix}-status`] = status;
    headers[`${prefix}-reset`] = String(window.resetsAt);
    headers[`${prefix}-representative-claim`] = claim;
  }
  return headers;
}

const errorEvent = ({ body }: Refusal): StreamEvent => ({ ...(body as object), type: "error" });

export const messagesFormat: Format = {
  name: "messages",
  read,
  events,
  plain,
  refusal,
  errorEvent,
  windowHeaders,
};
