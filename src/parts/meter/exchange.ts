/** One request of a run: passes it on to its service, and the answer back as it comes, and notes what the answer shows. */
import http, {
  type IncomingHttpHeaders,
  type IncomingMessage,
  type ServerResponse,
} from "node:http";
import https from "node:https";
import { pipeline } from "node:stream/promises";
import type { MeteredRun, MeterNote, Refusal } from "../../agents/meter.ts";
import { textOf } from "../../agents/stream/json-values.ts";
import { addUsage, NO_USAGE, tokensOf } from "../../agents/stream/run-state.ts";
import { systemCode } from "../../core/errors.ts";
import { parseObject } from "../../core/json-object.ts";
import { AnswerReader } from "./answer-reader.ts";
import { readRefusal, readWindows } from "./refusal.ts";
import { refuse } from "./refuse.ts";
import type { Replay } from "./replay.ts";
import { type RequestLog, tokensIn } from "./request-log.ts";

export interface ExchangeParts {
  request: IncomingMessage;
  response: ServerResponse;
  target: URL;
  body: Buffer;
  /** It asks a model. */
  isCall: boolean;
  /** The number of the service. */
  service: number;
}

/** They are about one connection only. */
const OF_CONNECTION: ReadonlySet<string> = new Set([
  "connection",
  "keep-alive",
  "proxy-authenticate",
  "proxy-authorization",
  "proxy-connection",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
]);
/** How a kept connection fails that its other side has closed. */
const STALE: ReadonlySet<string> = new Set(["ECONNRESET", "EPIPE"]);
/** A service that has closed a kept connection refuses the next request at once (ms). */
const STALE_MS = 1000;
/** We set these for the service. A compressed answer could not be read. */
const OURS: ReadonlySet<string> = new Set(["host", "content-length", "accept-encoding", "expect"]);

export class Exchange {
  private readonly startedMs = Date.now();
  private readonly asked: string;
  private model: string;
  /** See `MeterNote`. */
  private readonly of: string;
  private used = NO_USAGE;
  private reader: AnswerReader | undefined;
  private readonly kept: Buffer[] = [];
  private hasEnded = false;

  constructor(
    private readonly run: MeteredRun,
    private readonly log: RequestLog,
    private readonly deps: ExchangeParts,
  ) {
    const { body, isCall, service, target } = deps;
    this.asked = isCall || log.hasRoom ? body.toString() : "";
    const [, inPath = ""] = /\/models\/([^/:]+):\w+$/.exec(target.pathname) ?? [];
    this.model = inPath || (isCall ? textOf(parseObject(this.asked)?.["model"]) : "");
    this.of = `${service} ${this.model}`;
    this.note({ note: "asked", of: this.of, size: body.length });
  }

  /** Resolves when the answer has ended, or cannot come. */
  async pass(): Promise<void> {
    const { response } = this.deps;
    let answer: IncomingMessage;
    try {
      answer = await this.ask(true);
    } catch (error) {
      // The program has gone.
      if (response.destroyed) {
        this.note({ note: "left", of: this.of });
        this.write(null, {});
        return;
      }
      const why = `cannot reach ${this.deps.target.host} (${systemCode(error) || String(error)})`;
      this.noteUnreached(why);
      refuse(response, 502, why);
      return;
    }
    const { headers, statusCode = 502 } = answer;
    this.begin(statusCode, headers);
    response.writeHead(statusCode, withoutConnection(headers));
    response.flushHeaders();
    let isCut = false;
    answer.once("error", () => {
      isCut = !response.destroyed;
    });
    try {
      await pipeline(
        answer,
        (chunks: AsyncIterable<Buffer>) => this.read(chunks, answer),
        response,
      );
    } catch {
      this.end(statusCode, headers, isCut ? "cut" : "left");
    }
  }

  private async *read(
    chunks: AsyncIterable<Buffer>,
    { headers, statusCode = 502 }: IncomingMessage,
  ): AsyncGenerator<Buffer> {
    for await (const chunk of chunks) {
      this.take(chunk);
      yield chunk;
    }
    // First the note: when the program has its answer, it may ask again at once.
    this.end(statusCode, headers, "whole");
  }

  /** Answers from a record. */
  async answer(replay: Replay): Promise<void> {
    const { response, target } = this.deps;
    const found = replay.next(target.pathname);
    if (found === undefined) {
      const why = `the record has no further answer to ${target.pathname}`;
      this.noteUnreached(why);
      refuse(response, 502, why);
      return;
    }
    const headers = { "content-type": found.contentType };
    this.begin(found.status, headers);
    this.take(Buffer.from(found.answer));
    this.end(found.status, headers, "whole");
    response.writeHead(found.status, headers).end(found.answer);
  }

  /** @param mayRepeat a service may have closed a connection that was kept open: then the request is sent once more */
  private ask(mayRepeat: boolean): Promise<IncomingMessage> {
    const { body, request, response, target } = this.deps;
    const headers = Object.fromEntries(
      Object.entries(withoutConnection(request.headers)).filter(([name]) => !OURS.has(name)),
    );
    const options = {
      method: request.method ?? "GET",
      headers: { ...headers, "accept-encoding": "identity" },
    };
    return new Promise((resolve, reject) => {
      const hasAnswer = false;
      const sentMs = performance.now();
      const outgoing = (target.protocol === "https:" ? https : http).request(
        target,
        options,
        resolve,
      );
      const leave = (): void => void outgoing.destroy();
      response.once("close", leave);
      let isDone = false;
      const fail = (error: Error): void => {
        if (isDone || hasAnswer) return;
        isDone = true;
        response.off("close", leave);
        const isStale =
          mayRepeat &&
          outgoing.reusedSocket &&
          STALE.has(systemCode(error)) &&
          performance.now() - sentMs < STALE_MS;
        if (isStale && !response.destroyed) this.ask(false).then(resolve, reject);
        else reject(error);
      };
      outgoing.on("error", fail);
      // It was not asked for.
      outgoing.once("upgrade", (_, socket) => {
        socket.destroy();
        fail(new Error("it answers with another protocol"));
      });
      if (body.length > 0 || request.headers["content-length"] !== undefined)
        outgoing.setHeader("content-length", body.length);
      outgoing.end(body);
    });
  }

  private begin(status: number, headers: IncomingHttpHeaders): void {
    const isStream = String(headers["content-type"]).includes("event-stream") && status < 400;
    this.reader = new AnswerReader({
      isStream,
      onUsed: (usage, model) => {
        this.used = addUsage(this.used, usage);
        this.model ||= model;
        // An answer that is fetched again was counted when it was made.
        if (this.deps.request.method === "POST")
          this.run.onNote({ note: "used", of: this.of, model: this.model, usage });
      },
    });
    for (const window of readWindows(headers)) this.run.onNote(window);
  }

  private take(chunk: Buffer): void {
    this.reader?.take(chunk);
    if (this.log.hasRoom) this.kept.push(chunk);
  }

  /** @param how it ended. `left`: the program did not wait for the rest */
  private end(status: number, headers: IncomingHttpHeaders, how: "whole" | "cut" | "left"): void {
    if (this.hasEnded) return;
    this.hasEnded = true;
    this.reader?.end();
    const error = this.reader?.error;
    const { of } = this;
    const isWhole = how === "whole" || this.reader?.isComplete === true;
    const refusal =
      readRefusal(status, headers, error, Date.now()) ??
      (how === "cut" && !isWhole ? unreached("the service cut its answer", status) : undefined);
    if (refusal !== undefined) this.note({ note: "refused", of, ...refusal });
    else if (isWhole && status < 400 && error === undefined)
      this.note({ note: "answered", of, isCounted: tokensOf(this.used) > 0 });
    else this.note({ note: "left", of });
    this.write(status, headers);
  }

  private noteUnreached(text: string): void {
    this.note({ note: "refused", of: this.of, ...unreached(text, null) });
    this.write(null, {});
  }

  /** What a request for something else than an answer of a model shows is not about the run. */
  private note(note: MeterNote): void {
    if (this.deps.isCall) this.run.onNote(note);
  }

  private write(status: number | null, headers: IncomingHttpHeaders): void {
    const { hasRoom } = this.log;
    this.log.write({
      at: this.startedMs,
      path: this.deps.target.pathname,
      model: this.model,
      status,
      duration_ms: Date.now() - this.startedMs,
      ...tokensIn(this.used),
      ...(hasRoom
        ? {
            content_type: headers["content-type"] ?? "",
            request: this.asked,
            answer: Buffer.concat(this.kept).toString(),
          }
        : {}),
    });
  }
}

function unreached(text: string, status: number | null): Refusal {
  return { fault: "overload", status, resetsAtMs: null, text };
}

function withoutConnection(headers: IncomingHttpHeaders): IncomingHttpHeaders {
  const named = String(headers.connection ?? "")
    .toLowerCase()
    .split(/\s*,\s*/);
  return Object.fromEntries(
    Object.entries(headers).filter(([name]) => !(OF_CONNECTION.has(name) || named.includes(name))),
  );
}
