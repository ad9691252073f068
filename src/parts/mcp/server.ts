/**
 * The Model Context Protocol over standard input and output: JSON-RPC, one object a line. It offers tools, and nothing else. Each call
 * is carried out by `run`; calls may overlap, and are answered as they end.
 */
import { isObject } from "../../core/json-object.ts";
import type { Said } from "./run-verb.ts";
import type { Args, Tool } from "./tools.ts";

/** The newest first. */
const VERSIONS = ["2025-06-18", "2025-03-26", "2024-11-05"] as const;
const CALLS_MAX = 8;
/** Tasks that one client may make within an hour. */
const TASKS_MAX = 30;
const HOUR_MS = 60 * 60 * 1000;

const PARSE_ERROR = -32_700;
const INVALID_REQUEST = -32_600;
const METHOD_NOT_FOUND = -32_601;
const INVALID_PARAMS = -32_602;

type Id = string | number;
type Answer = { result: object } | { error: { code: number; message: string } };

export interface McpHost {
  tools: readonly Tool[];
  version: string;
  /** What the model is told about this server. */
  instructions: string;
  run: (tool: Tool, args: Args, signal: AbortSignal) => Promise<Said>;
  /** Writes one line. */
  write: (line: string) => Promise<void>;
  nowMs: () => number;
}

export class McpServer {
  private readonly host: McpHost;
  private readonly calls = new Map<Id, AbortController>();
  /** When tasks were made (ms). */
  private madeAtMs: number[] = [];

  constructor(host: McpHost) {
    this.host = host;
  }

  /** Resolves when the line is answered, if it has an answer. @throws when the answer cannot be written */
  async take(line: string): Promise<void> {
    if (line.trim() === "") return;
    const request = parse(line);
    if (request === undefined) return await this.send(null, fail(PARSE_ERROR, "this is no JSON"));
    const { id, method, params } = request;
    if (typeof method !== "string" || !(id === undefined || isId(id)))
      return await this.send(isId(id) ? id : null, fail(INVALID_REQUEST, "this is no request"));
    const given = isObject(params) ? params : {};
    if (isId(id)) return await this.send(id, await this.answer(id, method, given));
    const cancelled = given["requestId"];
    if (method === "notifications/cancelled" && isId(cancelled)) this.calls.get(cancelled)?.abort();
  }

  private async answer(id: Id, method: string, params: Record<string, unknown>): Promise<Answer> {
    switch (method) {
      case "initialize":
        return { result: this.greet(params["protocolVersion"]) };
      case "ping":
        return { result: {} };
      case "tools/list":
        return { result: { tools: this.host.tools.map(({ spec }) => spec) } };
      case "tools/call":
        return await this.call(id, params);
      default:
        return fail(METHOD_NOT_FOUND, `there is no method ${method}`);
    }
  }

  private greet(wanted: unknown): object {
    const { instructions, version } = this.host;
    return {
      protocolVersion: VERSIONS.find((one) => one === wanted) ?? VERSIONS[0],
      capabilities: { tools: {} },
      serverInfo: { name: "mailchute", version },
      instructions,
    };
  }

  private async call(id: Id, { name, arguments: args = {} }: Record<string, unknown>) {
    const tool = this.host.tools.find(({ spec }) => spec.name === name);
    if (tool === undefined) return fail(INVALID_PARAMS, `there is no tool ${String(name)}`);
    const fault = tool.check(args);
    // The model reads this, and can call again.
    if (fault !== undefined) return told({ isOk: false, text: fault.message });
    const limit = this.explainLimit(tool);
    if (limit !== undefined) return told({ isOk: false, text: limit });
    if (this.calls.has(id)) return fail(INVALID_REQUEST, "this id is in use");
    const call = new AbortController();
    this.calls.set(id, call);
    try {
      return told(await this.host.run(tool, args as Args, call.signal));
    } finally {
      this.calls.delete(id);
    }
  }

  /** Counts the call if it may be made. */
  private explainLimit({ makesTask }: Tool): string | undefined {
    if (this.calls.size >= CALLS_MAX) return `${CALLS_MAX} calls run: wait for one of them`;
    if (!makesTask) return undefined;
    const nowMs = this.host.nowMs();
    this.madeAtMs = this.madeAtMs.filter((atMs) => nowMs - atMs < HOUR_MS);
    if (this.madeAtMs.length >= TASKS_MAX)
      return `this server makes at most ${TASKS_MAX} tasks within an hour: wait, or ask a person`;
    this.madeAtMs.push(nowMs);
    return undefined;
  }

  private async send(id: Id | null, answer: Answer): Promise<void> {
    await this.host.write(`${JSON.stringify({ jsonrpc: "2.0", id, ...answer })}\n`);
  }
}

function parse(line: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(line);
    return isObject(value) ? value : {};
  } catch {
    return undefined;
  }
}

function isId(value: unknown): value is Id {
  return typeof value === "string" || Number.isInteger(value);
}

function fail(code: number, message: string): Answer {
  return { error: { code, message } };
}

function told({ isOk, text }: Said): Answer {
  return { result: { content: [{ type: "text", text }], isError: !isOk } };
}
