/** `logs`: what a task's program wrote, attempt by attempt; follows it until the task has settled. */
import fs from "node:fs";
import { basename, join } from "node:path";
import { StringDecoder } from "node:string_decoder";
import { ErrTaskNotFound, systemCode } from "../../core/errors.ts";
import type { StateTree } from "../../core/state-tree.ts";
import { openToRead } from "../../host/regular-file.ts";
import { safeOutput } from "../../text/render.ts";
import { findLog } from "../../view/know-task.ts";
import { type Context, defineCommand } from "../shell/command-spec.ts";
import { EXIT } from "../shell/exit-codes.ts";
import { existingTree } from "../shell/options.ts";
import { ChangeSignal } from "../wait/change-signal.ts";

const CHUNK_BYTES = 64 * 1024;
/** Longest time between two reads of a log that is followed. */
const FOLLOW_MS = 200;

export const command = defineCommand({
  usage: "ID[#LINE] [-f] [--stderr]",
  endsWithReader: true,
  args: { min: 1, max: 1 },
  details: [
    "Shows the output of the newest attempt; with #LINE, that of one line of a batch. On a terminal, colours are kept and all other control codes are shown as text. A file or pipe gets the bytes as they are.",
  ],
  options: {
    follow: {
      type: "flag",
      short: "f",
      help: "show new output until the task has settled, over all its attempts",
    },
    stderr: { type: "flag", help: "stderr instead of stdout" },
  },
  async run(ctx) {
    const tree = existingTree(ctx);
    const id = ctx.positionals[0] ?? "";
    const stream = ctx.options.stderr ? "stderr" : "stdout";
    const found = await findLog(tree, id);
    if (found.run === undefined && !found.isKnown) {
      throw new ErrTaskNotFound(`no tray has a task ${JSON.stringify(id)}`, {
        id,
        phase: "logs",
        hint: "`mailchute ls` lists tasks",
      });
    }
    if (found.run === undefined && !ctx.options.follow) {
      ctx.out.note(
        `${id} has not run yet, or its logs are past their retention; --follow waits for it`,
      );
      return EXIT.notFound;
    }
    if (!ctx.options.follow && found.run !== undefined) {
      const log = new LogReader(join(found.run, `${stream}.log`), basename(found.run), stream, ctx);
      await log.drain();
      await log.end();
      return EXIT.ok;
    }
    await follow(ctx, tree, id, stream);
    return EXIT.ok;
  },
});

async function follow(ctx: Context, tree: StateTree, id: string, stream: string): Promise<void> {
  let log: LogReader | undefined;
  for (;;) {
    // The task is looked up before its log is read: so all that it wrote before it settled is read.
    const found = await findLog(tree, id);
    const path = found.run === undefined ? undefined : join(found.run, `${stream}.log`);
    if (path !== undefined && path !== log?.path) {
      await log?.drain();
      await log?.end();
      if (log !== undefined) ctx.out.note(`next attempt: ${basename(found.run ?? "")}`);
      log = new LogReader(path, basename(found.run ?? ""), stream, ctx);
    }
    await log?.drain();
    if (found.isSettled || !found.isKnown) break;
    const change = new ChangeSignal(
      found.run === undefined ? [join(tree.mailbox, "processing")] : [found.run],
      FOLLOW_MS,
    );
    await change.next();
    change.close();
  }
  await log?.end();
}

/** Copies what is new in one log to stdout. */
class LogReader {
  readonly path: string;
  private readonly run: string;
  private readonly stream: string;
  private readonly ctx: Context;
  private readonly decoder = new StringDecoder("utf8");
  private offset = 0;
  private line = "";

  constructor(path: string, run: string, stream: string, ctx: Context) {
    this.path = path;
    this.run = run;
    this.stream = stream;
    this.ctx = ctx;
  }

  async drain(): Promise<void> {
    let fd: number;
    try {
      fd = openToRead(this.path);
    } catch (error) {
      // ENOENT: not made yet. A log that is there and cannot be read must not look empty.
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
    if (!this.ctx.json && !this.ctx.isTerminal) {
      await this.ctx.out.raw(Buffer.from(bytes));
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
      else await this.ctx.out.raw(safeOutput(line) + (isPart ? "" : "\n"));
    }
  }
}
