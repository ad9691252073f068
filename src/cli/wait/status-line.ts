/** A line below the output of a command on a terminal. It is redrawn on stderr while the command waits, and removed at the end. */
import { cut, safe } from "../../text/render.ts";
import type { Output } from "../shell/command-spec.ts";

const TO_BEGIN = "\r\x1b[K";

type Stream = Pick<NodeJS.WriteStream, "columns" | "write">;

export class StatusLine {
  private shown = "";

  constructor(private readonly stream: Stream = process.stderr) {}

  /** Nothing is written when the text is the same. */
  show(text: string): void {
    // Leave the last cell free: after it, the cursor would be at the beginning of the next line.
    const line = cut(safe(text), Math.max(1, (this.stream.columns || 80) - 1));
    if (line === this.shown) return;
    this.shown = line;
    this.stream.write(`${TO_BEGIN}${line}`);
  }

  hide(): void {
    if (this.shown === "") return;
    this.shown = "";
    this.stream.write(TO_BEGIN);
  }

  /** The same output, but it removes the line before it prints. */
  beside(out: Output): Output {
    const after = <A extends unknown[], R>(print: (...args: A) => R) => {
      return (...args: A): R => {
        this.hide();
        return print(...args);
      };
    };
    return {
      line: after((text?: string) => out.line(text)),
      json: after((value: unknown) => out.json(value)),
      raw: after((chunk: string | Uint8Array) => out.raw(chunk)),
      rawError: after((chunk: string | Uint8Array) => out.rawError(chunk)),
      note: after((text: string) => out.note(text)),
    };
  }
}
