/**
 * Serves the Model Context Protocol over standard input and output: JSON-RPC, one object a line. It offers tools, and the results of
 * tasks as resources. `run` carries out each call. Calls may overlap, and each is answered when it ends.
 */
import { isObject } from "../../core/json-object.ts";
import {
  type Answer,
  fail,
  type Id,
  INVALID_PARAMS,
  INVALID_REQUEST,
  isId,
  METHOD_NOT_FOUND,
  PARSE_ERROR,
  parseMessage,
  REFUSED,
} from "./json-rpc.ts";
import { listResults, RESULT_TEMPLATE, type RunJson, readResult } from "./results.ts";
import type { Kept, Said } from "./run-verb.ts";
import type { Args, Tool } from "./tools.ts";

/** The newest first. */
const VERSIONS = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"] as const;
const CALLS_MAX = 8;
const CALLS_TEXT = `${CALLS_MAX} calls run: wait for one of them`;
/** Tasks that one client may make within an hour. */
const TASKS_MAX = 30;
const HOUR_MS = 60 * 60 * 1000;
/** Limit of a tool's answer, which a model reads. */
const TEXT_BYTES_MAX = 50_000;
/** Limit of a document, which a program reads. */
const DOCUMENT_BYTES_MAX = 8 * 1024 * 1024;

export interface McpHost {
  tools: readonly Tool[];
  version: string;
  /** What the model is told about this server. */
  instructions: string;
  /** The agent name of the client; undefined: the agent of the run around the server. */
  name: string | undefined;
  /** Carries out a verb of the command line. */
  run: (argv: readonly string[], signal: AbortSignal, kept: Kept) => Promise<Said>;
  /** Writes one line. */
  write: (line: string) => Promise<void>;
  nowMs: () => number;
}

export class McpServer {
  private readonly calls = new Map<Id, AbortController>();
  /** When tasks were made (ms). */
  private madeAtMs: number[] = [];

  constructor(private readonly host: McpHost) {}

  /** Resolves when the line is answered, if it has an answer. @throws when the answer cannot be written */
  async take(line: string): Promise<void> {
    if (line.trim() === "") return;
    const request = parseMessage(line);
    if (request === undefined) return await this.send(null, fail(PARSE_ERROR, "this is not JSON"));
    const { id, method, params } = request;
    if (typeof method !== "string" || !(id === undefined || isId(id)))
      return await this.send(isId(id) ? id : null, fail(INVALID_REQUEST, "this is not a request"));
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
      case "resources/list":
        return await this.look(id, listResults);
      case "resources/templates/list":
        return { result: { resourceTemplates: [RESULT_TEMPLATE] } };
      case "resources/read":
        return await this.look(id, (run) => readResult(params["uri"], run));
      default:
        return fail(METHOD_NOT_FOUND, `there is no method ${method}`);
    }
  }

  private greet(wanted: unknown): object {
    const { instructions, version } = this.host;
    return {
      protocolVersion: VERSIONS.find((one) => one === wanted) ?? VERSIONS[0],
      capabilities: { tools: {}, resources: {} },
      serverInfo: { name: "mailchute", version },
      instructions,
    };
  }

  private async call(id: Id, { name, arguments: args = {} }: Record<string, unknown>) {
    const tool = this.host.tools.find(({ spec }) => spec.name === name);
    if (tool === undefined) return fail(INVALID_PARAMS, `there is no tool ${String(name)}`);
    const fault = tool.check(args);
    // The model reads this message, and can call again.
    if (fault !== undefined) return told(fault.message, true);
    const limit = this.explainLimit(tool);
    if (limit !== undefined) return told(limit, true);
    const argv = [tool.verb, ...tool.words(args as Args, this.host.name)];
    const kept = { bytesMax: TEXT_BYTES_MAX, end: tool.keeps } as const;
    return await this.carryOut(id, async (signal) => {
      const { code, stdout, stderr } = await this.host.run(argv, signal, kept);
      const isOk = code !== null && tool.okCodes.includes(code);
      return told(`${stdout}${stderr}`.trimEnd(), !isOk);
    });
  }

  private async look(id: Id, at: (run: RunJson) => Promise<Answer>): Promise<Answer> {
    if (this.calls.size >= CALLS_MAX) return fail(REFUSED, CALLS_TEXT);
    const kept = { bytesMax: DOCUMENT_BYTES_MAX, end: "first" } as const;
    return await this.carryOut(
      id,
      async (signal) => await at((argv) => this.host.run([...argv, "--json"], signal, kept)),
    );
  }

  private async carryOut(id: Id, work: (signal: AbortSignal) => Promise<Answer>): Promise<Answer> {
    if (this.calls.has(id)) return fail(INVALID_REQUEST, "this id is in use");
    const call = new AbortController();
    this.calls.set(id, call);
    try {
      return await work(call.signal);
    } finally {
      this.calls.delete(id);
    }
  }

  /** Why the call is refused. Undefined: it is allowed, and counted if it makes a task. */
  private explainLimit({ makesTask }: Tool): string | undefined {
    if (this.calls.size >= CALLS_MAX) return CALLS_TEXT;
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

function told(text: string, isError: boolean): Answer {
  return { result: { content: [{ type: "text", text }], isError } };
}
