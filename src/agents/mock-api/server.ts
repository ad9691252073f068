/**
 * A mock of the model APIs on 127.0.0.1: programs such as claude and codex run against it without an account. A script says what it
 * answers. It remembers every request.
 */
import http, { type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { answer } from "./answer.ts";
import { chatFormat } from "./chat.ts";
import type { Asked, Format } from "./format.ts";
import { geminiFormat } from "./gemini.ts";
import { messagesFormat } from "./messages.ts";
import { responsesFormat } from "./responses.ts";
import { type Picked, type Scenario, Script, type Step } from "./script.ts";

/** A request as it came, for assertions. */
export interface MockRequest {
  atMs: number;
  format: Format["name"] | "none";
  method: string;
  path: string;
  kind: Asked["kind"] | "other";
  model: string;
  /** The last four letters of the API key or token. */
  key: string;
  tools: readonly string[];
  /** The last three messages, oldest first, shortened; or all of them, whole. */
  messages: readonly string[];
  /** The conversation that answered, and the number of its step; -1 when no step answered. */
  conversation: string;
  step: number;
}

export interface MockApi {
  /** The base URL, without a slash at its end. claude uses it as it is; for codex, add `/v1`. */
  url: string;
  requests: readonly MockRequest[];
  /** Drops open connections, too. */
  close(): Promise<void>;
}

const MESSAGES_KEPT = 3;
const MESSAGE_LENGTH_MAX = 300;
/** Answers to requests that use up no step of the script. */
const SUMMARY: Step = { say: "Summary of the work so far." };
const SIDE: Step = { say: "ok" };

export interface MockApiOptions {
  /** Default 0: any free port. */
  port?: number;
  /** Called with each request once it is read, before it is answered. */
  onRequest?: (request: MockRequest) => void;
  /** True: records all messages of a request in full length. */
  isWhole?: boolean;
}

/** Says what a model would answer, where a list of steps cannot know it. */
export type Model = (asked: Asked, key: string) => Step;

export async function startMockApi(
  scenario: Scenario | Model,
  { port = 0, onRequest, isWhole = false }: MockApiOptions = {},
): Promise<MockApi> {
  const turnOf = turnsOf(scenario);
  const requests: MockRequest[] = [];
  const record = (request: MockRequest): void => {
    const kept = isWhole ? request : { ...request, messages: shortened(request.messages) };
    requests.push(kept);
    onRequest?.(kept);
  };
  const server = http.createServer((request, response) => {
    handle(turnOf, record, request, response).catch(() => response.destroy());
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject).listen(port, "127.0.0.1", resolve);
  });
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

async function handle(
  turnOf: Turns,
  record: (request: MockRequest) => void,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const atMs = Date.now();
  const path = (request.url ?? "/").split("?", 1)[0]!;
  const method = request.method ?? "GET";
  const format = method === "POST" ? formatOf(path) : undefined;
  const text = await readBody(request);
  const came = { atMs, method, path, key: keyOf(request) };
  const body = parse(text);
  if (!format || !body) {
    record({ ...came, ...NO_TURN });
    sendOther(response, method, path, format);
    return;
  }
  const asked = format.read(path, body);
  const { conversation, index, step } = choose(turnOf, asked, came.key, atMs);
  record({
    ...came,
    format: format.name,
    kind: asked.kind,
    model: asked.model,
    tools: asked.tools,
    messages: asked.lines,
    conversation,
    step: index,
  });
  await answer(response, format, asked, step);
}

function shortened(messages: readonly string[]): string[] {
  return messages.slice(-MESSAGES_KEPT).map((line) => line.slice(0, MESSAGE_LENGTH_MAX));
}

const NO_TURN = {
  format: "none",
  kind: "other",
  model: "",
  tools: [],
  messages: [],
  conversation: "none",
  step: -1,
} as const;

function formatOf(path: string): Format | undefined {
  if (/\/messages(?:\/count_tokens)?$/.test(path)) return messagesFormat;
  if (/\/responses(?:\/compact)?$/.test(path)) return responsesFormat;
  if (path.endsWith("/chat/completions")) return chatFormat;
  return /\/models\/[^/:]+:\w+$/.test(path) ? geminiFormat : undefined;
}

type Turns = (asked: Asked, key: string, nowMs: number) => Picked;

function turnsOf(scenario: Scenario | Model): Turns {
  if (typeof scenario === "function")
    return (asked, key) => ({ conversation: "model", index: 0, step: scenario(asked, key) });
  const script = new Script(scenario);
  return ({ texts }, key, nowMs) => script.take({ texts, key }, nowMs);
}

function choose(turnOf: Turns, asked: Asked, key: string, nowMs: number): Picked {
  if (asked.kind === "turn") return turnOf(asked, key, nowMs);
  const step = asked.kind === "compaction" ? SUMMARY : SIDE;
  return { conversation: "none", index: -1, step };
}

/** Refuses bodies that are not JSON. Of the other addresses, only the list of models has an answer. */
function sendOther(
  response: ServerResponse,
  method: string,
  path: string,
  format: Format | undefined,
): void {
  if (method === "HEAD") {
    response.writeHead(200).end();
    return;
  }
  const json = { "content-type": "application/json" };
  if (path.endsWith("/models")) response.writeHead(200, json).end('{"data":[],"models":[]}');
  else {
    const { status, body } = (format ?? messagesFormat).refusal({ status: format ? 400 : 404 }, 0);
    response.writeHead(status, json).end(JSON.stringify(body));
  }
}

function keyOf({ headers }: IncomingMessage): string {
  const key = headers["x-api-key"] ?? headers["x-goog-api-key"] ?? headers.authorization ?? "";
  return String(key).slice(-4);
}

async function readBody(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString();
}

function parse(text: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null && !Array.isArray(value)
      ? (value as Record<string, unknown>)
      : undefined;
  } catch {
    return undefined;
  }
}
