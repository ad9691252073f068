/**
 * Writes to the terminal without waiting for it. So signals can end this process even when the line is slow or stopped. While the
 * terminal has not taken everything, it is busy, and callers leave out frames.
 */
import fs from "node:fs";
import { systemCode } from "../../core/errors.ts";
import { openAnew } from "../../host/open-anew.ts";

const STDOUT = 1;
const AGAIN_MS = 10;
/** How long `finish` waits for a terminal that takes nothing (ms). */
const FINISH_MS = 500;

type Stream = Pick<NodeJS.WriteStream, "columns" | "rows" | "write" | "on" | "off">;

export class TerminalWriter {
  /** A new descriptor of the terminal, so that other users of the terminal still get blocking writes; undefined if it cannot be opened. */
  private readonly fd: number | undefined;
  private rest: Buffer = Buffer.alloc(0);
  private timer: NodeJS.Timeout | undefined;

  constructor(private readonly stream: Stream = process.stdout) {
    this.fd = openAnew(STDOUT);
  }

  get columns(): number {
    return this.stream.columns;
  }

  get rows(): number {
    return this.stream.rows;
  }

  get isBusy(): boolean {
    return this.rest.length > 0;
  }

  write(text: string): void {
    if (this.fd === undefined) {
      this.stream.write(text);
      return;
    }
    this.rest = Buffer.concat([this.rest, Buffer.from(text)]);
    this.goOn();
  }

  /** Waits a short time until everything is written, then gives up. */
  finish(): void {
    const untilMs = performance.now() + FINISH_MS;
    while (this.isBusy && performance.now() < untilMs) {
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, AGAIN_MS);
      this.goOn();
    }
    this.rest = Buffer.alloc(0);
    clearTimeout(this.timer);
    this.timer = undefined;
  }

  on(event: "resize", listener: () => void): void {
    this.stream.on(event, listener);
  }

  off(event: "resize", listener: () => void): void {
    this.stream.off(event, listener);
  }

  private goOn(): void {
    if (this.fd === undefined) return;
    try {
      while (this.rest.length > 0) this.rest = this.rest.subarray(fs.writeSync(this.fd, this.rest));
    } catch (error) {
      // After any other error, the terminal is gone. A signal or the end of its input tells the process.
      if (systemCode(error) !== "EAGAIN") this.rest = Buffer.alloc(0);
    }
    if (this.isBusy)
      this.timer ??= setTimeout(() => {
        this.timer = undefined;
        this.goOn();
      }, AGAIN_MS).unref();
  }
}
