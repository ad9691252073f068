/** Writes the answers of a command. It makes all control and invisible characters visible, from any source. */
import fs from "node:fs";
import { messageOf, systemCode } from "../../core/errors.ts";
import { visibleJson } from "../../core/visible.ts";
import { statOf } from "../../host/regular-file.ts";
import { safeOutput } from "../../text/render.ts";
import type { Output } from "./command-spec.ts";
import { EXIT } from "./exit-codes.ts";

const STDOUT = 1;

/**
 * Standard output. It writes to a file or pipe directly, because Node's own stream takes longer to load than most commands take to
 * run. Like that stream, such a write waits for a slow reader.
 */
export class Stdout {
  readonly isTerminal: boolean;
  /** Width of the terminal; 0 when stdout is no terminal, or its width is unknown. */
  readonly columns: number;
  private isDirect: boolean;
  private onError: (error: unknown) => void = failUnlessUnread;

  constructor() {
    const facts = fs.fstatSync(STDOUT);
    this.isDirect = !facts.isCharacterDevice() || facts.rdev === deviceOf("/dev/null");
    this.isTerminal = !this.isDirect && process.stdout.isTTY === true;
    this.columns = this.isTerminal ? process.stdout.columns : 0;
    if (!this.isDirect) this.handOver();
  }

  /** A long-lived command continues even if its output can no longer be read. */
  outliveErrors(): void {
    this.onError = () => {};
  }

  /** Ends the process when its reader is gone. A command that only streams has nothing to finish, as in `mailchute events | head`. */
  endWithReader(): void {
    this.onError = endOrFail;
  }

  /** Resolves when more may be written. */
  async write(chunk: string | Uint8Array): Promise<void> {
    const bytes = typeof chunk === "string" ? Buffer.from(chunk) : chunk;
    let at = 0;
    while (this.isDirect && at < bytes.length) {
      try {
        at += fs.writeSync(STDOUT, bytes, at);
      } catch (error) {
        // Another process made the pipe non-blocking, which Node's stream can handle.
        if (systemCode(error) === "EAGAIN") this.handOver();
        else return this.onError(error);
      }
    }
    if (at < bytes.length && !process.stdout.write(bytes.subarray(at)))
      await new Promise<void>((resolve) => process.stdout.once("drain", () => resolve()));
  }

  private handOver(): void {
    this.isDirect = false;
    process.stdout.on("error", (error) => this.onError(error));
  }
}

function deviceOf(path: string): number | undefined {
  return statOf(path)?.rdev;
}

/** When the reader is gone, the command still finishes its work, and its exit code shows the result. */
function failUnlessUnread(error: unknown): void {
  if (systemCode(error) !== "EPIPE") fail(error);
}

function endOrFail(error: unknown): void {
  if (systemCode(error) === "EPIPE") process.exit(EXIT.ok);
  fail(error);
}

function fail(error: unknown): void {
  writeStderr(`mailchute: ErrIo: cannot write the answer: ${messageOf(error)}\n`);
  process.exit(EXIT.io);
}

export function makeOutput(stdout: Stdout): Output {
  return {
    line: (text = "") => void stdout.write(`${safeOutput(text)}\n`),
    json: (value) => void stdout.write(`${visibleJson(value)}\n`),
    raw: (chunk) => stdout.write(chunk),
    rawError: writeRawStderr,
    note: (text) => writeStderr(`mailchute: ${text}\n`),
  };
}

let isStderrGuarded = false;

export function writeStderr(text: string): void {
  guardStderr();
  process.stderr.write(safeOutput(text));
}

async function writeRawStderr(chunk: string | Uint8Array): Promise<void> {
  guardStderr();
  if (!process.stderr.write(chunk))
    await new Promise<void>((resolve) => process.stderr.once("drain", () => resolve()));
}

function guardStderr(): void {
  if (!isStderrGuarded) {
    isStderrGuarded = true;
    process.stderr.on("error", () => {
      // The reader of stderr is gone, and there is no other place to report it.
    });
  }
}
