/** The OpenAI Responses API, as far as codex uses it. */
import {
  type Asked,
  type Format,
  newId,
  type Refusal,
  type StreamEvent,
  textOf,
  usageOf,
} from "./format.ts";
import type { Step, Windows } from "./script.ts";

interface Item {
  type?: string;
  role?: string;
  content?: string | { text?: string }[];
  name?: string;
  output?: unknown;
}

/** How codex asks for a summary of the conversation: by a prompt, or by a special item. */
const COMPACTION = /CONTEXT CHECKPOINT COMPACTION/;

function read(path: string, body: Record<string, unknown>): Asked {
  const input = body["input"];
  const items: Item[] =
    typeof input === "string" ? [{ role: "user", content: input }] : ((input ?? []) as Item[]);
  const tools = (body["tools"] ?? []) as { name?: string; type?: string }[];
  const last = items.at(-1);
  const isCompaction =
    path.endsWith("/compact") ||
    last?.type === "compaction_trigger" ||
    (last?.role === "user" && COMPACTION.test(textsOf(last)));
  return {
    kind: isCompaction ? "compaction" : "turn",
    model: (body["model"] ?? "") as string,
    isStream: body["stream"] === true,
    texts: items.filter(({ role }) => role === "user").map(textsOf),
    lines: items.map(lineOf),
    tools: tools.map(({ name, type }) => name ?? type ?? ""),
  };
}

const textsOf = ({ content }: Item): string =>
  typeof content === "string" ? content : (content ?? []).map(({ text }) => text ?? "").join("\n");

function lineOf(item: Item): string {
  if (item.role !== undefined) return `${item.role}: ${textsOf(item)}`;
  if (item.output !== undefined) return `[result ${JSON.stringify(item.output)}]`;
  return `[${item.type ?? "item"}${item.name === undefined ? "" : ` ${item.name}`}]`;
}

/** The shell tools that versions of codex offer, the newest first, and how each wants its command. */
const SHELLS: readonly (readonly [name: string, input: (command: string) => object])[] = [
  ["exec_command", (cmd) => ({ cmd, yield_time_ms: 60_000 })],
  ["shell_command", (command) => ({ command })],
  ["shell", (command) => ({ command: ["bash", "-lc", command] })],
];

function itemsOf(step: Step, asked: Asked): Record<string, unknown>[] {
  const items: Record<string, unknown>[] = [];
  if (step.think !== undefined)
    items.push({
      type: "reasoning",
      id: newId("rs_"),
      summary: [{ type: "summary_text", text: step.think }],
      encrypted_content: null,
    });
  const text = textOf(step);
  if (text !== undefined)
    items.push({
      type: "message",
      role: "assistant",
      id: newId("msg_"),
      status: "completed",
      content: [{ type: "output_text", text, annotations: [] }],
    });
  if (step.run !== undefined) {
    const [name, input] = SHELLS.find(([shell]) => asked.tools.includes(shell)) ?? SHELLS[0]!;
    items.push(callOf(name, { ...input(step.run), ...step.runWith }));
  }
  if (step.tool !== undefined) items.push(callOf(step.tool, step.input ?? {}));
  return items;
}

/** A tool of an MCP server, `mcp__SERVER__NAME` to claude, is a member of the tool `mcp__SERVER` here. */
function callOf(tool: string, input: unknown): Record<string, unknown> {
  const [, namespace, name = tool] = /^(mcp__.+?)__(.+)$/.exec(tool) ?? [];
  const named = namespace === undefined ? { name } : { name, namespace };
  const call = { call_id: newId("call_"), ...named, status: "completed" };
  return typeof input === "string"
    ? { type: "custom_tool_call", id: newId("ctc_"), ...call, input }
    : { type: "function_call", id: newId("fc_"), ...call, arguments: JSON.stringify(input) };
}

function plain(step: Step, asked: Asked): Record<string, unknown> {
  const usage = usageOf(step);
  // This API counts cached input and reasoning as parts of the whole.
  const input = usage.input + usage.cachedInput;
  return {
    id: newId("resp_"),
    object: "response",
    status: "completed",
    model: asked.model,
    output: itemsOf(step, asked),
    usage: {
      input_tokens: input,
      input_tokens_details: { cached_tokens: usage.cachedInput },
      output_tokens: usage.output,
      output_tokens_details: { reasoning_tokens: usage.reasoning },
      total_tokens: input + usage.output,
    },
  };
}

function events(step: Step, asked: Asked): StreamEvent[] {
  const response = plain(step, asked);
  const output = response["output"] as Record<string, unknown>[];
  const begun = { ...response, status: "in_progress", output: [], usage: null };
  const stream: StreamEvent[] = [
    { type: "response.created", response: begun },
    ...output.flatMap(itemEvents),
    { type: "response.completed", response },
  ];
  return stream.map((event, index) => ({ ...event, sequence_number: index }));
}

function itemEvents(item: Record<string, unknown>, index: number): StreamEvent[] {
  const at = { output_index: index, item_id: item["id"] };
  const deltas: StreamEvent[] = [];
  if (item["type"] === "message") {
    const [part] = item["content"] as { text: string }[];
    const text = part?.text ?? "";
    const middle = Math.ceil(text.length / 2);
    for (const delta of [text.slice(0, middle), text.slice(middle)])
      deltas.push({ type: "response.output_text.delta", ...at, content_index: 0, delta });
  }
  const empty = { ...item, status: "in_progress" };
  if (item["type"] === "message") Object.assign(empty, { content: [] });
  return [
    { type: "response.output_item.added", output_index: index, item: empty },
    ...deltas,
    { type: "response.output_item.done", output_index: index, item },
  ];
}

const ERRORS: Readonly<
  Record<number, readonly [type: string, code: string | null, message: string]>
> = {
  400: ["invalid_request_error", null, "The request is not valid."],
  401: ["invalid_request_error", "invalid_api_key", "Incorrect API key provided."],
  403: [
    "invalid_request_error",
    "unsupported_country_region_territory",
    "Country, region, or territory not supported",
  ],
  404: [
    "invalid_request_error",
    "model_not_found",
    "The model does not exist or you do not have access to it.",
  ],
  429: ["requests", "rate_limit_exceeded", "Rate limit reached. Please try again later."],
  500: ["server_error", null, "The server had an error while processing your request."],
  503: [
    "server_error",
    "server_is_overloaded",
    "The server is currently overloaded. Please try again later.",
  ],
};

/** The body of an error, as all APIs of OpenAI write it. */
export function openAiError(status: number): { error: object } {
  const [type, code, message] = ERRORS[status] ?? ["server_error", null, `Status ${status}`];
  return { error: { message, type, param: null, code } };
}

function refusal(step: Step, nowMs: number): Refusal {
  const status = step.status ?? 429;
  const limit = step.usageLimit;
  if (limit === undefined)
    return {
      status,
      headers: windowHeaders(step.windows ?? {}),
      body: step.body ?? openAiError(status),
    };
  const error = {
    type: "usage_limit_reached",
    message: "The usage limit has been reached",
    plan_type: "plus",
    resets_at: limit,
    resets_in_seconds: Math.max(0, Math.ceil(limit - nowMs / 1000)),
  };
  return {
    status,
    headers: windowHeaders(step.windows ?? { fiveHour: { used: 1, resetsAt: limit } }),
    body: step.body ?? { error },
  };
}

const WINDOWS = [
  ["fiveHour", "primary", 300],
  ["sevenDay", "secondary", 10_080],
] as const;

function windowHeaders(windows: Windows): Record<string, string> {
  const headers: Record<string, string> = {};
  for (const [key, name, minutes] of WINDOWS) {
    const window = windows[key];
    if (!window) continue;
    headers[`x-codex-${name}-used-percent`] = String(window.used * 100);
    headers[`x-codex-${name}-window-minutes`] = String(minutes);
    headers[`x-codex-${name}-reset-at`] = String(window.resetsAt);
  }
  return headers;
}

function errorEvent({ body }: Refusal): StreamEvent {
  const { error } = body as { error?: { code?: string | null; type?: string; message?: string } };
  const told = { code: error?.code ?? error?.type, message: error?.message };
  return {
    type: "response.failed",
    response: { id: newId("resp_"), status: "failed", error: told },
  };
}

export const responsesFormat: Format = {
  name: "responses",
  read,
  events,
  plain,
  refusal,
  errorEvent,
  windowHeaders,
};
