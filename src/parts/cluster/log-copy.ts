/** A copy of what a run at another machine has written, in a folder like that of a run, fetched part by part. */
import { randomBytes } from "node:crypto";
import fs from "node:fs";
import os from "node:os";
import { join } from "node:path";
import type { Dispatch } from "./protocol/dispatch.ts";
import type { LogAsk, LogFile, LogPart } from "./protocol/messages.ts";

/** Of a longer log only the end is fetched (bytes). */
const FETCHED_BYTES_MAX = 64 * 1024 * 1024;

export interface LogCopyOptions {
  dispatch: Dispatch;
  isStderr: boolean;
  /** Asks the machine that has the run. */
  ask: (ask: LogAsk) => Promise<LogPart>;
  note: (text: string) => void;
}

export class LogCopy {
  readonly dir: string;
  private readonly o: LogCopyOptions;
  private readonly root = fs.mkdtempSync(join(os.tmpdir(), "mailchute-logs-"));
  /** How much of each file was fetched (bytes). */
  private readonly at = new Map<LogFile, number>();
  private hasSession = false;

  constructor(options: LogCopyOptions) {
    this.o = options;
    const { task, submission, attempt } = options.dispatch;
    this.dir = join(this.root, `${task}@${submission}.${attempt}.0`);
    fs.mkdirSync(this.dir);
    process.once("SIGINT", this.leave);
  }

  /** Fetches what is new. `gone`: the machine has nothing of the run. @throws what `ask` throws */
  async pull(): Promise<"is on" | "has ended" | "gone"> {
    const { isStderr } = this.o;
    // It says which kind of agent runs there, and is there from the beginning of its run.
    if (!this.hasSession && !isStderr)
      this.hasSession = (await this.fetch("session.json")).size > 0;
    const isAgent = this.hasSession && !isStderr;
    const last = await this.fetch(
      isStderr ? "stderr.log" : isAgent ? "events.jsonl" : "stdout.log",
    );
    // When each line came.
    if (isAgent) await this.fetch("events.times");
    if (!last.is_found) return "gone";
    return last.has_ended ? "has ended" : "is on";
  }

  remove(): void {
    process.removeListener("SIGINT", this.leave);
    fs.rmSync(this.root, { recursive: true, force: true });
  }

  /** @returns the last part, which brought nothing */
  private async fetch(file: LogFile): Promise<LogPart> {
    const { ask, dispatch, note } = this.o;
    for (;;) {
      const at = this.at.get(file);
      const request = randomBytes(8).toString("hex");
      const part = await ask({ request, dispatch, file, from: at ?? -FETCHED_BYTES_MAX });
      const bytes = Buffer.from(part.data, "base64");
      if (at === undefined && part.from > 0)
        note(`it has ${part.size} bytes; this shows the end from byte ${part.from}`);
      if (bytes.length === 0) return part;
      fs.appendFileSync(join(this.dir, file), bytes, { mode: 0o600 });
      this.at.set(file, part.from + bytes.length);
    }
  }

  private readonly leave = (): void => {
    fs.rmSync(this.root, { recursive: true, force: true });
    process.kill(process.pid, "SIGINT");
  };
}
