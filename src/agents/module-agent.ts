/** Runs a JS or TS function inside the worker process: the cheapest way to run a task, and the least isolated. */
import fs from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { messageOf } from "../core/errors.ts";
import type { AttemptOutcome } from "../core/outcome.ts";
import type { Task } from "../core/task.ts";
import { Agent, type Assignment, type StopReason, stoppedOutcome, timeoutOf } from "./agent.ts";

/** What a handler gets beside the task. */
export interface HandlerContext {
  /** Aborted when the attempt must stop: time limit, cancel, shutdown, lost lease. */
  signal: AbortSignal;
  /** From 1. */
  attempt: number;
  lease: string;
  /** The task's JSON text exactly as dropped, for payloads with numbers that JavaScript cannot hold. */
  taskText: string;
  /** Writes a `progress` event. */
  progress(details: Record<string, unknown>): void;
  /** Appends a line to this run's stdout.log. */
  log(...parts: unknown[]): void;
}

/** `export default` of a handler module. What it returns is the result's `output`; what it throws fails the attempt. */
export type Handler = (task: Task, context: HandlerContext) => unknown;

/** Thrown by a handler to say that another run cannot help. */
export class NoRetryError extends Error {
  readonly canRetry = false;
}

export class ModuleAgent extends Agent {
  private handler: Promise<Handler> | undefined;
  private loaded: Handler | undefined;

  override async run(assignment: Assignment): Promise<AttemptOutcome> {
    let handler: Handler;
    try {
      handler = this.loaded ?? (await this.load());
    } catch (error) {
      this.handler = undefined;
      const message = `cannot load ${this.settings.module}: ${messageOf(error)}`;
      return {
        kind: "failed",
        failure: "spawn",
        code: "ErrSpawn",
        message,
        exitCode: null,
        signal: null,
        canRetry: false,
      };
    }
    const limitMs = timeoutOf(assignment, this.settings);
    const controller = new AbortController();
    const log = new RunLog(assignment.runDir);
    const context: HandlerContext = {
      signal: controller.signal,
      attempt: assignment.attempt,
      lease: assignment.lease,
      taskText: assignment.taskText,
      progress: (details) => assignment.onProgress(details),
      log: (...parts) => log.line(parts),
    };
    let stopped: StopReason | undefined;
    let giveUp: (() => void) | undefined;
    const stuck = new Promise<"stuck">((resolve) => {
      giveUp = () => resolve("stuck");
    });
    let patience: NodeJS.Timeout | undefined;
    const stop = (reason: StopReason): void => {
      if (stopped !== undefined) return;
      stopped = reason;
      controller.abort(new DOMException(`the attempt is stopped: ${reason}`, "AbortError"));
      patience = setTimeout(() => giveUp?.(), assignment.settings.grace_ms);
    };
    const timer = limitMs > 0 ? setTimeout(() => stop("timeout"), limitMs) : undefined;
    const onAbort = (): void => stop(assignment.signal.reason as StopReason);
    assignment.signal.addEventListener("abort", onAbort);
    if (assignment.signal.aborted) onAbort();
    try {
      const outcome = await Promise.race([this.call(handler, assignment.task, context), stuck]);
      if (outcome === "stuck") assignment.onStuck();
      else if (stopped === undefined) return outcome;
      // A handler that finished in spite of the wish to stop has finished.
      else if (outcome.kind === "completed") return outcome;
      return stoppedOutcome(stopped ?? "timeout", limitMs);
    } finally {
      clearTimeout(timer);
      clearTimeout(patience);
      assignment.signal.removeEventListener("abort", onAbort);
      log.close();
    }
  }

  private async call(
    handler: Handler,
    task: Task,
    context: HandlerContext,
  ): Promise<AttemptOutcome> {
    try {
      const output = (await handler(task, context)) ?? null;
      const said =
        typeof output === "object" && output !== null ? (output as Record<string, unknown>) : {};
      return {
        kind: "completed",
        output: jsonSafe(output),
        verdict: typeof said["verdict"] === "string" ? said["verdict"] : "unknown",
        verdictReason: typeof said["verdict_reason"] === "string" ? said["verdict_reason"] : "",
        exitCode: null,
      };
    } catch (error) {
      const canRetry = (error as { canRetry?: unknown } | null)?.canRetry !== false;
      return {
        kind: "failed",
        failure: "handler",
        code: "ErrHandler",
        message: messageOf(error),
        exitCode: null,
        signal: null,
        canRetry,
      };
    }
  }

  private load(): Promise<Handler> {
    this.handler ??= loadHandler(this.settings.module ?? "").then((handler) => {
      this.loaded = handler;
      return handler;
    });
    return this.handler;
  }
}

async function loadHandler(path: string): Promise<Handler> {
  const isTypeScript = /\.[cm]?ts$/.test(path);
  let loaded: { default?: unknown };
  if (isTypeScript) {
    const { createJiti } = await import("jiti");
    loaded = await createJiti(import.meta.url).import(path);
  } else {
    loaded = (await import(pathToFileURL(path).href)) as { default?: unknown };
  }
  if (typeof loaded.default !== "function")
    throw new TypeError("its default export is not a function");
  return loaded.default as Handler;
}

/** Results must be JSON; what is not fails here, inside the attempt, and not when it is settled. */
function jsonSafe(output: unknown): unknown {
  if (typeof output === "object" || typeof output === "bigint") JSON.stringify(output);
  return typeof output === "function" || typeof output === "symbol" ? null : output;
}

/** stdout.log of a run, made with its first line. */
class RunLog {
  private readonly dir: string;
  private fd: number | undefined;

  constructor(dir: string) {
    this.dir = dir;
  }

  line(parts: readonly unknown[]): void {
    if (this.fd === undefined) {
      fs.mkdirSync(this.dir, { recursive: true, mode: 0o700 });
      this.fd = fs.openSync(join(this.dir, "stdout.log"), "a", 0o600);
    }
    const text = parts
      .map((part) => (typeof part === "string" ? part : JSON.stringify(part)))
      .join(" ");
    fs.writeSync(this.fd, `${text}\n`);
  }

  close(): void {
    if (this.fd !== undefined) fs.closeSync(this.fd);
    this.fd = undefined;
  }
}
