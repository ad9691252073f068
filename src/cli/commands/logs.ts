/** `logs`: prints what a task's program wrote to stdout and stderr, or the conversation of a coding agent; follows it until the task has settled. */
import fs from "node:fs";
import { basename, join } from "node:path";
import { StringDecoder } from "node:string_decoder";
import { setTimeout as wait } from "node:timers/promises";
import { sessionOfRun } from "../../agents/stream/session-file.ts";
import { messageOf, systemCode } from "../../core/errors.ts";
import { parseRun } from "../../core/names.ts";
import type { StateTree } from "../../core/state-tree.ts";
import { ChangeSignal } from "../../host/change-signal.ts";
import { openToRead, statOf } from "../../host/regular-file.ts";
import { paint, safe, safeOutput } from "../../text/render.ts";
import { listRuns, noSuchTask } from "../../view/find-task.ts";
import { findLog } from "../../view/know-task.ts";
import { type Context, defineCommand } from "../shell/command-spec.ts";
import { EXIT } from "../shell/exit-codes.ts";
import { existingTree } from "../shell/options.ts";
import type { RemoteLog } from "../shell/remote-log.ts";
import { ConversationReader } from "../text/conversation-reader.ts";

const CHUNK_BYTES = 64 * 1024;
/** The longest time between two reads of a log that is followed (ms). */
const FOLLOW_MS = 200;
/** The pause between two questions to another machine (ms). */
const FOLLOW_ELSEWHERE_MS = 500;

export const command = defineCommand({
  usage: "ID[#LINE]|NAME [-f] [--stderr] [--verify] [--raw]",
  endsWithReader: true,
  args: { min: 1, max: 1 },
  details: [
    "Shows the output of the newest attempt; with #LINE, that of one line of a batch. What the program wrote to stderr goes to stderr; each is a file of its own, so their lines are in order only while the task is followed. After its end, the stream that it wrote to last comes last. On a terminal, colours are kept and all other control codes are shown as text. A file or pipe gets the bytes as they are.",
    "Of a task that runs, or has run, at another machine, it reads the log there, through its bridge, stdout or with --stderr stderr: see docs/cluster.md.",
    "NAME is an agent of the scope of the state tree: the task that it runs now, else the one that it ran last; with --follow, else its next one.",
    "Of a coding agent it shows the conversation, over all attempts, with local times: > what it was told, * a tool call, | the end of its result, ! what failed, + a changed file. --raw shows the lines of its program as they are, of the newest attempt.",
  ],
  options: {
    follow: {
      type: "flag",
      short: "f",
      help: "show new output until the task has settled, over all its attempts",
    },
    stderr: { type: "flag", help: "only stderr, on stdout" },
    verify: { type: "flag", help: "what the checks of the newest attempt said (verify)" },
    raw: { type: "flag", help: "of a coding agent: the lines of its program, as they are" },
  },
  async run(ctx) {
    const tree = existingTree(ctx);
    const named = ctx.positionals[0] ?? "";
    const id = await idOf(ctx, named);
    if (id === undefined) return EXIT.notFound;
    const found = await findLog(tree, id);
    if (found.run === undefined && !found.isKnown) {
      throw noSuchTask(id, "logs");
    }
    if (found.run === undefined && found.elsewhere === undefined && !ctx.options.follow) {
      ctx.out.note(
        `${id} has not run yet, or its logs are past their retention; --follow waits for it`,
      );
      return EXIT.notFound;
    }
    const { stderr, raw, verify } = ctx.options;
    const log = new TaskLog(ctx, { isStderr: stderr, isRaw: raw, isVerify: verify });
    if (found.elsewhere !== undefined) return showElsewhere(ctx, tree, id, log);
    if (found.run === undefined || ctx.options.follow) return follow(ctx, tree, id, log);
    else {
      await log.showEarlier(listRuns(tree, id), found.run);
      await log.open(found.run);
      await log.drain(false);
      await log.end(found.end);
      if (!verify && hasChecks(found.run))
        ctx.out.note(`what its checks said: mailchute logs ${safe(id)} --verify`);
    }
    return EXIT.ok;
  },
});

const CHECKS = "verify.log";

function hasChecks(run: string): boolean {
  return (statOf(join(run, CHECKS))?.size ?? 0) > 0;
}

type LogsContext = Context & { options: { follow: boolean; stderr: boolean } };

/** The given id, or the id of the task of an agent with this name. Undefined when that agent has not run yet; a note says so. */
async function idOf(ctx: LogsContext, named: string): Promise<string | undefined> {
  const tree = existingTree(ctx);
  const log = await findLog(tree, named);
  if (log.isKnown || log.run !== undefined) return named;
  const { RUN_FINDERS } = await import("../../app/run-finders.ts");
  for (const find of RUN_FINDERS)
    for (let isTold = false; ; isTold = true) {
      const found = await find(ctx, named);
      if (found === undefined) break;
      const [running] = found.running;
      const id = running ?? (ctx.options.follow ? undefined : found.last);
      if (id !== undefined) {
        if (!ctx.json) ctx.out.note(`${safe(named)}: task ${safe(id)}`);
        return id;
      }
      if (!isTold)
        ctx.out.note(
          `${safe(named)} ${ctx.options.follow ? "does not run; this waits for its next run" : "has not run yet"}`,
        );
      if (!ctx.options.follow) return undefined;
      const change = new ChangeSignal([join(tree.mailbox, "processing")], FOLLOW_MS);
      await change.next();
      change.close();
    }
  return named;
}

/** @returns the exit code */
async function follow(
  ctx: LogsContext,
  tree: StateTree,
  id: string,
  log: TaskLog,
): Promise<number> {
  let end: string | undefined;
  for (;;) {
    // Look up the task before reading its log, so that everything written before it settled is read.
    const found = await findLog(tree, id);
    if (found.elsewhere !== undefined) return showElsewhere(ctx, tree, id, log);
    end = found.end;
    if (found.run !== undefined) {
      if (log.run === undefined) await log.showEarlier(listRuns(tree, id), found.run);
      await log.open(found.run);
    }
    await log.drain(!found.isSettled);
    if (found.isSettled || !found.isKnown) break;
    const change = new ChangeSignal(
      found.run === undefined ? [join(tree.mailbox, "processing")] : [found.run],
      FOLLOW_MS,
    );
    await change.next();
    change.close();
  }
  await log.end(end);
  return EXIT.ok;
}

/** Shows the log of the newest run, if that ran on another machine. With --follow, until the task has settled. @returns the exit code */
async function showElsewhere(
  ctx: LogsContext,
  tree: StateTree,
  id: string,
  log: TaskLog,
): Promise<number> {
  const { follow: isFollowed, stderr: isStderr } = ctx.options;
  const { REMOTE_LOGS } = await import("../../app/remote-logs.ts");
  const [open] = REMOTE_LOGS;
  let copy: RemoteLog | undefined;
  let of = "";
  let isTold = false;
  try {
    for (;;) {
      const found = await findLog(tree, id);
      const { elsewhere } = found;
      const isOver = !isFollowed || found.isSettled || !found.isKnown;
      if (elsewhere !== undefined && open !== undefined) {
        const { machine, submission, attempt } = elsewhere;
        const now = `${machine} ${submission}.${attempt}`;
        if (of !== now) {
          await copy?.close();
          copy = await open(ctx, { id, machine, submission, attempt }, isStderr);
          of = now;
        }
        const state = await copy?.pull().catch((error: unknown) => {
          if (isOver) throw error;
          // Ask that machine again later, because the run there goes on.
          if (!isTold) ctx.out.note(safe(messageOf(error)));
          isTold = true;
          return "silent" as const;
        });
        if (state === "gone" && isOver) {
          ctx.out.note(`${safe(machine)} no longer has its logs: they are past their retention`);
          return EXIT.notFound;
        }
        if (copy !== undefined && (state === "is on" || state === "has ended")) {
          isTold = false;
          await log.open(copy.dir);
          await log.drain(state === "is on");
        }
      }
      if (isOver) {
        await log.end(found.end);
        return EXIT.ok;
      }
      await wait(FOLLOW_ELSEWHERE_MS);
    }
  } finally {
    await copy?.close();
  }
}

interface RunLog {
  drain(isLive: boolean): Promise<void>;
  end(): Promise<void>;
}

/** The log of a task, run after run: as a conversation when a coding agent ran, else as bytes. */
class TaskLog {
  run: string | undefined;
  private readonly isStderr: boolean;
  private readonly isRaw: boolean;
  private readonly isVerify: boolean;
  private log: RunLog | undefined;
  private isConversation = false;

  constructor(
    private readonly ctx: Context,
    { isStderr, isRaw, isVerify }: { isStderr: boolean; isRaw: boolean; isVerify: boolean },
  ) {
    this.isVerify = isVerify;
    this.isStderr = isStderr;
    this.isRaw = isRaw;
  }

  /** Prints the conversations of the earlier runs, which this run continues. */
  async showEarlier(runs: readonly string[], newest: string): Promise<void> {
    for (const run of runs.slice(0, Math.max(0, runs.indexOf(newest)))) {
      const conversation = await this.conversationOf(run);
      if (conversation === undefined) continue;
      await this.head(run);
      await conversation.end();
    }
  }

  /** Opens the log of this run. A run shows its kind only after it has begun, so the caller calls this again. */
  async open(run: string): Promise<void> {
    if (this.run === run && this.isConversation) return;
    const conversation = await this.conversationOf(run);
    if (this.run === run && conversation === undefined && this.log !== undefined) return;
    const isNext = this.run !== undefined && this.run !== run;
    if (isNext) {
      await this.log?.drain(false);
      await this.log?.end();
    }
    this.run = run;
    this.isConversation = conversation !== undefined;
    if (this.isConversation && (isNext || attemptOf(run) > 1)) await this.head(run);
    else if (isNext) this.ctx.out.note(`next attempt: ${basename(run)}`);
    this.log = conversation ?? this.bytesOf(run);
  }

  async drain(isLive: boolean): Promise<void> {
    await this.log?.drain(isLive);
  }

  /** @param end how the task has ended */
  async end(end: string | undefined): Promise<void> {
    await this.log?.end();
    if (this.isConversation && end !== undefined) await this.rule(end);
  }

  private async head(run: string): Promise<void> {
    await this.rule(`attempt ${attemptOf(run)}`);
  }

  private async rule(text: string): Promise<void> {
    const { colour } = this.ctx;
    await this.ctx.out.raw(`${paint(colour, "bold", `== ${safe(text)}`)}\n`);
  }

  /** Undefined when no coding agent ran there, or the options ask for another view. */
  private async conversationOf(run: string): Promise<ConversationReader | undefined> {
    const { ctx } = this;
    if (this.isStderr || this.isRaw || this.isVerify || ctx.json) return undefined;
    const session = sessionOfRun(run);
    if (session === undefined) return undefined;
    const { loadKind } = await import("../../app/agent-kinds.ts");
    const read = (await loadKind(session.kind))?.newReader();
    if (read === undefined) return undefined;
    const page = { width: ctx.isTerminal ? ctx.columns : undefined, colour: ctx.colour };
    return new ConversationReader(run, read, page, (text) => ctx.out.raw(text));
  }

  /** Both streams of a program. A copy of a log from another machine holds only one. */
  private bytesOf(run: string): RunLog {
    if (this.isVerify) return new LogReader(join(run, CHECKS), basename(run), "verify", this.ctx);
    if (!this.isStderr && sessionOfRun(run) !== undefined)
      return new LogReader(join(run, "events.jsonl"), basename(run), "events", this.ctx);
    const reader = (stream: "stdout" | "stderr", isOnStderr: boolean): LogReader =>
      new LogReader(join(run, `${stream}.log`), basename(run), stream, this.ctx, isOnStderr);
    return this.isStderr
      ? reader("stderr", false)
      : new BothStreams(reader("stdout", false), reader("stderr", true));
  }
}

/** The two streams of a run. Their order is not recorded, so the one that was written to last comes last. */
class BothStreams implements RunLog {
  private readonly readers: readonly LogReader[];

  constructor(...readers: LogReader[]) {
    this.readers = readers;
  }

  async drain(): Promise<void> {
    const written = this.readers.map((reader) => ({
      reader,
      ms: statOf(reader.path)?.mtimeMs ?? 0,
    }));
    for (const { reader } of written.sort((a, b) => a.ms - b.ms)) await reader.drain();
  }

  async end(): Promise<void> {
    for (const reader of this.readers) await reader.end();
  }
}

function attemptOf(run: string): number {
  return parseRun(basename(run))?.attempt ?? 1;
}

/** Copies new bytes of one log to stdout or stderr. */
class LogReader {
  private readonly write: (chunk: string | Uint8Array) => Promise<void>;
  private readonly isTerminal: boolean;
  private readonly decoder = new StringDecoder("utf8");
  private offset = 0;
  private line = "";

  constructor(
    readonly path: string,
    private readonly run: string,
    private readonly stream: string,
    private readonly ctx: Context,
    isOnStderr = false,
  ) {
    const { out } = ctx;
    this.write = (chunk) => (isOnStderr ? out.rawError(chunk) : out.raw(chunk));
    this.isTerminal = isOnStderr ? process.stderr.isTTY === true : ctx.isTerminal;
  }

  async drain(): Promise<void> {
    let fd: number;
    try {
      fd = openToRead(this.path);
    } catch (error) {
      // ENOENT: the log is not made yet. A log that exists and cannot be read must not look empty.
      if (systemCode(error) === "ENOENT") return;
      throw error;
    }
    try {
      const buffer = Buffer.alloc(CHUNK_BYTES);
      for (;;) {
        const got = fs.readSync(fd, buffer, 0, buffer.length, this.offset);
        if (got === 0) return;
        this.offset += got;
        await this.emit(buffer.subarray(0, got));
      }
    } finally {
      fs.closeSync(fd);
    }
  }

  async end(): Promise<void> {
    const rest = this.line + this.decoder.end();
    this.line = "";
    if (rest !== "") await this.emitLines([rest], true);
  }

  private async emit(bytes: Buffer): Promise<void> {
    if (!this.ctx.json && !this.isTerminal) {
      await this.write(Buffer.from(bytes));
      return;
    }
    const lines = (this.line + this.decoder.write(bytes)).split("\n");
    this.line = lines.pop() ?? "";
    await this.emitLines(lines, false);
    if (this.line.length > CHUNK_BYTES) {
      const long = this.line;
      this.line = "";
      await this.emitLines([long], true);
    }
  }

  private async emitLines(lines: readonly string[], isPart: boolean): Promise<void> {
    for (const line of lines) {
      if (this.ctx.json) this.ctx.out.json({ run: this.run, stream: this.stream, line });
      else await this.write(safeOutput(line) + (isPart ? "" : "\n"));
    }
  }
}
