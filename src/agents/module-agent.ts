/** Runs a JS or TS function inside the worker process: the cheapest way to run a task, and the least isolated. */
import fs from "node:fs";
import { join } from "node:path";
import { messageOf, systemCode } from "../core/errors.ts";
import { roomOf } from "../core/free-space.ts";
import { OUTPUT_DEPTH_MAX } from "../core/limits.ts";
import { isDeeperThan } from "../core/nesting.ts";
import { type AttemptOutcome, failed } from "../core/outcome.ts";
import type { AgentSettings } from "../core/settings.ts";
import { RUN_DIR_DEPTH } from "../core/state-tree.ts";
import type { Task } from "../core/task.ts";
import { spaceOf } from "../host/disk-room.ts";
import { defaultOf, prepareLoader } from "../host/load-module.ts";
import { makeDirs } from "../host/make-dirs.ts";
import { openToAppend } from "../host/regular-file.ts";
import {
  Agent,
  type Assignment,
  type StopReason,
  stoppedOutcome,
  timeLeftMs,
  timeoutOf,
} from "./agent.ts";
import type { Handler, HandlerContext } from "./handler.ts";
import { writtenTooLong } from "./program.ts";

/** Called before code of the user runs, which may block this thread. @returns call this when it has ended */
export type EnterFunction = () => () => void;

export class ModuleAgent extends Agent {
  private handler: Promise<Handler> | undefined;
  private loaded: Handler | undefined;

  /**
   * @param loaded a function of this process. Left out: the agent loads the function from the module that the settings name
   * @param enter left out: nothing watches this thread
   */
  constructor(
    settings: AgentSettings,
    loaded?: Handler,
    private readonly enter: EnterFunction = () => () => {},
  ) {
    super(settings);
    this.loaded = loaded;
  }

  override warmUp(): void {
    if (this.loaded !== undefined) return;
    // The first run that needs the loader reports the error.
    prepareLoader(this.settings.module ?? "").catch(() => {});
  }

  override async run(assignment: Assignment): Promise<AttemptOutcome> {
    let handler: Handler;
    try {
      handler = this.loaded ?? (await this.load());
    } catch (error) {
      this.handler = undefined;
      const message = `cannot load ${this.settings.module}: ${messageOf(error)}`;
      return failed("spawn", "ErrSpawn", message, { canRetry: false });
    }
    const run = new HandlerRun(assignment, timeoutOf(assignment, this.settings), this.enter());
    return run.run(handler);
  }

  private load(): Promise<Handler> {
    this.handler ??= this.loadWatched(this.enter());
    return this.handler;
  }

  /** @param leave called when the code of the module has run */
  private async loadWatched(leave: () => void): Promise<Handler> {
    try {
      this.loaded = await loadHandler(this.settings.module ?? "");
      return this.loaded;
    } finally {
      leave();
    }
  }
}

/** One call of a handler: its context, its time limit, and the ways to stop it. */
class HandlerRun implements HandlerContext {
  readonly attempt: number;
  readonly lease: string;
  readonly taskText: string;
  readonly phase: string | undefined;
  readonly packetFile: string | undefined;
  private controller: AbortController | undefined;
  private stopped: StopReason | undefined;
  private timer: NodeJS.Timeout | undefined;
  private patience: NodeJS.Timeout | undefined;
  private logFile: RunLog | undefined;

  constructor(
    private readonly assignment: Assignment,
    private readonly limitMs: number,
    private leave: (() => void) | undefined,
  ) {
    this.attempt = assignment.attempt;
    this.lease = assignment.lease;
    this.taskText = assignment.taskText;
    this.phase = assignment.node?.phase;
    this.packetFile = assignment.node?.packetFile;
  }

  /** It is made on first use, because most handlers do not use it. */
  get signal(): AbortSignal {
    if (this.controller === undefined) {
      this.controller = new AbortController();
      if (this.stopped !== undefined) this.controller.abort(abortReason(this.stopped));
    }
    return this.controller.signal;
  }

  readonly progress = (details: Record<string, unknown>): void =>
    this.assignment.onProgress(details);

  readonly log = (...parts: unknown[]): void => {
    const { runDir, settings } = this.assignment;
    this.logFile ??= new RunLog(runDir, settings.output_bytes_max, settings.free_bytes_min);
    this.logFile.line(parts);
  };

  run(handler: Handler): Promise<AttemptOutcome> {
    return new Promise((resolve) => {
      const stop = (reason: StopReason): void => {
        if (this.stopped !== undefined) return;
        this.stopped = reason;
        this.controller?.abort(abortReason(reason));
        this.patience = setTimeout(() => {
          this.assignment.onStuck();
          resolve(this.ended(stoppedOutcome(reason, this.limitMs)));
        }, this.assignment.settings.grace_ms);
      };
      const leftMs = timeLeftMs(this.assignment, this.limitMs);
      if (leftMs > 0) this.timer = setTimeout(() => stop("timeout"), leftMs);
      this.assignment.stop.onStop(stop);
      void call(handler, this.assignment.task, this).then((outcome) => {
        // A handler that finished although it was asked to stop counts as finished.
        const isCut = this.stopped !== undefined && outcome.kind !== "completed";
        const reason = this.stopped ?? "stop";
        resolve(this.ended(isCut ? stoppedOutcome(reason, this.limitMs) : outcome));
      });
    });
  }

  private ended(outcome: AttemptOutcome): AttemptOutcome {
    this.leave?.();
    // A function that was given up may still end.
    this.leave = undefined;
    clearTimeout(this.timer);
    clearTimeout(this.patience);
    this.assignment.stop.onStop(undefined);
    this.logFile?.close();
    this.logFile = undefined;
    return outcome;
  }
}

function abortReason(reason: StopReason): DOMException {
  return new DOMException(`the attempt is stopped: ${reason}`, "AbortError");
}

async function call(
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
    if (error instanceof NoRoomError) return writtenTooLong();
    if (error instanceof OutputLimitError)
      return failed("output", "ErrOutputLimit", error.message, { canRetry: false });
    const canRetry = (error as { canRetry?: unknown } | null)?.canRetry !== false;
    return failed("handler", "ErrHandler", messageOf(error), { canRetry });
  }
}

async function loadHandler(path: string): Promise<Handler> {
  const handler = await defaultOf(path);
  if (typeof handler !== "function") throw new TypeError("its default export is not a function");
  return handler as Handler;
}

/** Results must be JSON. Another value fails here, inside the attempt, and not when the task is settled. */
function jsonSafe(output: unknown): unknown {
  if (typeof output === "object" || typeof output === "bigint") JSON.stringify(output);
  if (isDeeperThan(output, OUTPUT_DEPTH_MAX))
    throw new TypeError(`it returned a value nested deeper than ${OUTPUT_DEPTH_MAX} levels`);
  return typeof output === "function" || typeof output === "symbol" ? null : output;
}

/** How much may be logged between two looks at the disk (bytes). */
const UNSEEN_BYTES_MAX = 64 * 1024;
const NO_ROOM: ReadonlySet<string> = new Set(["ENOSPC", "EDQUOT"]);

/** stdout.log of a run, made with its first line. */
class RunLog {
  private fd: number | undefined;
  private bytes = 0;
  /** What was in the file before (bytes): a run that was put back may have used the same folder. */
  private bytesBefore = 0;
  /** How much was written since the disk was last seen to have room (bytes). */
  private bytesUnseen = 0;

  constructor(
    private readonly dir: string,
    private readonly bytesMax: number,
    private readonly freeBytesMin: number,
  ) {}

  /** @throws OutputLimitError when it reaches its limit; NoRoomError when it is long and the disk is nearly full */
  line(parts: readonly unknown[]): void {
    if (this.fd === undefined) {
      makeDirs(this.dir, RUN_DIR_DEPTH);
      this.fd = openToAppend(join(this.dir, "stdout.log"));
      this.bytes = fs.fstatSync(this.fd).size;
      this.bytesBefore = this.bytes;
    }
    const text = parts
      .map((part) => (typeof part === "string" ? part : JSON.stringify(part)))
      .join(" ");
    const line = Buffer.from(`${text}\n`);
    if (this.bytes + line.length > this.bytesMax) throw new OutputLimitError(this.bytesMax);
    if (this.bytesUnseen > UNSEEN_BYTES_MAX && this.isDiskNearlyFull()) this.giveUp(this.fd);
    const written = this.write(this.fd, line);
    this.bytes += written;
    this.bytesUnseen += written;
  }

  private write(fd: number, line: Buffer): number {
    try {
      return fs.writeSync(fd, line);
    } catch (error) {
      // A small disk may be full before we look at it.
      if (NO_ROOM.has(systemCode(error))) this.giveUp(fd);
      throw error;
    }
  }

  private isDiskNearlyFull(): boolean {
    this.bytesUnseen = 0;
    const space = spaceOf(this.dir);
    return space !== undefined && roomOf(space, this.freeBytesMin).bytes < 0;
  }

  /** Removes what the run wrote, because the task runs again from the start when there is room. */
  private giveUp(fd: number): never {
    fs.ftruncateSync(fd, this.bytesBefore);
    this.bytes = this.bytesBefore;
    throw new NoRoomError("the disk is nearly full, and this run wrote on");
  }

  close(): void {
    if (this.fd !== undefined) fs.closeSync(this.fd);
    this.fd = undefined;
  }
}

class NoRoomError extends Error {}

class OutputLimitError extends Error {
  constructor(bytesMax: number) {
    super(`it wrote more than ${bytesMax} bytes into its log`);
  }
}
