/** Copies the logs of a run at another machine, part by part, into a folder like that of a local run. */
import { randomBytes } from "node:crypto";
import fs from "node:fs";
import os from "node:os";
import { join } from "node:path";
import { appendRegularText } from "../../host/regular-file.ts";
import type { Dispatch } from "./protocol/dispatch.ts";
import type { LogAsk, LogFile, LogPart } from "./protocol/messages.ts";

/** Only this much of the end of a longer log is fetched (bytes). */
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
  private readonly options: LogCopyOptions;
  private readonly root = fs.mkdtempSync(join(os.tmpdir(), "mailchute-logs-"));
  /** How much of each file was fetched (bytes). */
  private readonly at = new Map<LogFile, number>();
  private hasSession = false;

  constructor(options: LogCopyOptions) {
    this.options = options;
    const { task, submission, attempt } = options.dispatch;
    this.dir = join(this.root, `${task}@${submission}.${attempt}.0`);
    fs.mkdirSync(this.dir);
    process.once("SIGINT", this.leave);
  }

  /** Fetches new parts of the logs. `gone`: the machine has no logs of the run. @throws what `ask` throws */
  async pull(): Promise<"is on" | "has ended" | "gone"> {
    const { isStderr } = this.options;
    // session.json says which kind of agent runs there. It exists from the beginning of the run.
    if (!this.hasSession && !isStderr)
      this.hasSession = (await this.fetch("session.json")).size > 0;
    const isAgent = this.hasSession && !isStderr;
    const last = await this.fetch(
      isStderr ? "stderr.log" : isAgent ? "events.jsonl" : "stdout.log",
    );
    // This file says when each line came.
    if (isAgent) await this.fetch("events.times");
    if (!last.is_found) return "gone";
    return last.has_ended ? "has ended" : "is on";
  }

  remove(): void {
    process.removeListener("SIGINT", this.leave);
    fs.rmSync(this.root, { recursive: true, force: true });
  }

  /** Fetches all new parts of a file. @returns the last answer, which had no bytes */
  private async fetch(file: LogFile): Promise<LogPart> {
    const { ask, dispatch, note } = this.options;
    for (;;) {
      const at = this.at.get(file);
      const request = randomBytes(8).toString("hex");
      const part = await ask({ request, dispatch, file, from: at ?? -FETCHED_BYTES_MAX });
      const bytes = Buffer.from(part.data, "base64");
      if (at === undefined && part.from > 0)
        note(`it has ${part.size} bytes; this shows the end from byte ${part.from}`);
      if (bytes.length === 0) return part;
      appendRegularText(join(this.dir, file), bytes);
      this.at.set(file, part.from + bytes.length);
    }
  }

  private readonly leave = (): void => {
    fs.rmSync(this.root, { recursive: true, force: true });
    process.kill(process.pid, "SIGINT");
  };
}
