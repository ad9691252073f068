/** The API of Gemini, as far as its own program uses it. The model and what is asked of it stand in the path. */
import {
  type Asked,
  callsOf,
  type Format,
  halves,
  type Refusal,
  type StreamEvent,
  textOf,
  usageOf,
} from "./format.ts";
import type { Step } from "./script.ts";

interface Part {
  text?: string;
  functionCall?: { name?: string };
  functionResponse?: { response?: unknown };
}

interface Content {
  role?: string;
  parts?: Part[];
}

function read(path: string, body: Record<string, unknown>): Asked {
  const [, model = "", call = ""] = /\/models\/([^/:]+):(\w+)$/.exec(path) ?? [];
  const contents = (body["contents"] ?? []) as Content[];
  const tools = (body["tools"] ?? []) as { functionDeclarations?: { name?: string }[] }[];
  const names = tools.flatMap((one) => one.functionDeclarations ?? []).map((one) => one.name ?? "");
  return {
    kind: call === "countTokens" ? "count" : names.length === 0 ? "side" : "turn",
    model,
    isStream: call === "streamGenerateContent",
    texts: contents.filter(({ role }) => role !== "model").map(textsOf),
    lines: contents.map(
      ({ role = "user", parts = [] }) =>
        `${role}: ${parts.map(lineOf).filter(Boolean).join(" | ")}`,
    ),
    tools: names,
  };
}

const textsOf = ({ parts = [] }: Content): string => parts.map(({ text }) => text ?? "").join("\n");

function lineOf({ text, functionCall, functionResponse }: Part): string {
  if (text !== undefined) return text;
  if (functionResponse !== undefined)
    return `[result ${JSON.stringify(functionResponse.response)}]`;
  return `[call ${functionCall?.name ?? ""}]`;
}

/** The parts of an answer. A text comes in two pieces, so that a cut can fall between them. */
function partsOf(step: Step, { tools }: Asked): Record<string, unknown>[] {
  return [
    ...(step.think === undefined ? [] : [{ text: step.think, thought: true }]),
    ...halves(textOf(step) ?? "").map((text) => ({ text })),
    ...callsOf(step, tools).map(({ name, input: args }) => ({ functionCall: { name, args } })),
  ];
}

function usageIn(step: Step): object {
  const { input, cachedInput, output, reasoning } = usageOf(step);
  const prompt = input + cachedInput;
  return {
    promptTokenCount: prompt,
    cachedContentTokenCount: cachedInput,
    candidatesTokenCount: output - reasoning,
    thoughtsTokenCount: reasoning,
    totalTokenCount: prompt + output,
  };
}

function answerOf(parts: readonly object[], asked: Asked, last?: object): StreamEvent {
  const candidate = { content: { role: "model", parts }, index: 0 };
  const ends = last === undefined ? {} : { finishReason: "STOP" };
  return { candidates: [{ ...candidate, ...ends }], modelVersion: asked.model, ...last };
}

function plain(step: Step, asked: Asked): Record<string, unknown> {
  if (asked.kind === "count") return { totalTokens: usageOf(step).input };
  return answerOf(partsOf(step, asked), asked, { usageMetadata: usageIn(step) });
}

function events(step: Step, asked: Asked): StreamEvent[] {
  return [
    ...partsOf(step, asked).map((part) => answerOf([part], asked)),
    answerOf([], asked, { usageMetadata: usageIn(step) }),
  ];
}

const ERRORS: Readonly<Record<number, readonly [status: string, message: string]>> = {
  400: ["INVALID_ARGUMENT", "Request contains an invalid argument."],
  401: [
    "UNAUTHENTICATED",
    "Request had invalid authentication credentials. Expected OAuth 2 access token.",
  ],
  403: ["PERMISSION_DENIED", "The caller does not have permission"],
  404: ["NOT_FOUND", "models/mock is not found for API version v1beta."],
  429: ["RESOURCE_EXHAUSTED", "Resource has been exhausted (e.g. check quota)."],
  500: ["INTERNAL", "An internal error has occurred."],
  503: ["UNAVAILABLE", "The model is overloaded. Please try again later."],
};

function refusal(step: Step): Refusal {
  const code = step.status ?? 429;
  const [status, message] = ERRORS[code] ?? ["INTERNAL", `Status ${code}`];
  return { status: code, headers: {}, body: step.body ?? { error: { code, message, status } } };
}

export const geminiFormat: Format = {
  name: "gemini",
  read,
  events,
  plain,
  refusal,
  errorEvent: ({ body }) => body as StreamEvent,
  windowHeaders: () => ({}),
};
