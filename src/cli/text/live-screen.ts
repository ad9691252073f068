/**
 * A view that is drawn again and again on a terminal, for `--watch`. It uses the terminal's alternate screen: nothing of a frame
 * gets into the scrollback, even when the width changes, and at the end the terminal shows what it showed before.
 */
import { cutPainted, safeOutput } from "../../text/render.ts";

const ENTER = "\x1b[?1049h\x1b[?25l";
const LEAVE = "\x1b[?25h\x1b[?1049l";
const HOME = "\x1b[H";
const ERASE_LINE_END = "\x1b[K";
const ERASE_BELOW = "\x1b[J";
const ENDING = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

/** The used members of `process.stdout`. */
export interface Terminal {
  columns: number;
  rows: number;
  write(text: string): unknown;
  on(event: "resize", listener: () => void): unknown;
  off(event: "resize", listener: () => void): unknown;
}

export class LiveScreen {
  private readonly terminal: Terminal;
  private linesFor: (columns: number) => readonly string[] = () => [];

  constructor(terminal: Terminal) {
    this.terminal = terminal;
  }

  /** Takes the screen until `close`, or until a signal ends this process. */
  open(): void {
    this.terminal.write(ENTER);
    this.terminal.on("resize", this.draw);
    for (const signal of ENDING) process.on(signal, this.end);
    process.on("SIGTSTP", this.suspend);
    process.on("SIGCONT", this.resume);
  }

  close(): void {
    this.terminal.off("resize", this.draw);
    for (const signal of ENDING) process.off(signal, this.end);
    process.off("SIGTSTP", this.suspend);
    process.off("SIGCONT", this.resume);
    this.terminal.write(LEAVE);
  }

  /** @param linesFor returns the view for a number of columns; called again whenever the terminal's width changes */
  show(linesFor: (columns: number) => readonly string[]): void {
    this.linesFor = linesFor;
    this.draw();
  }

  private readonly draw = (): void => {
    const { columns, rows } = this.terminal;
    this.terminal.write(frameOf(this.linesFor(columns), columns, rows));
  };

  /** Ends by the same signal, so that a shell sees what ended the process. */
  private readonly end = (signal: NodeJS.Signals): void => {
    this.close();
    process.kill(process.pid, signal);
  };

  private readonly suspend = (): void => {
    this.terminal.write(LEAVE);
    process.kill(process.pid, "SIGSTOP");
  };

  private readonly resume = (): void => {
    this.terminal.write(ENTER);
    this.draw();
  };
}

/** Lines that replace the last frame. Text that does not fit is cut, and lines at the end are left out: they would wrap or scroll. */
export function frameOf(lines: readonly string[], columns: number, rows: number): string {
  const room = Math.max(2, rows - 1);
  const shown =
    lines.length <= room
      ? lines
      : [
          ...lines.slice(0, room - 1),
          `and ${lines.length - room + 1} more lines: mailchute status`,
        ];
  const fitted = shown.map((line) => `${cutPainted(safeOutput(line), columns)}${ERASE_LINE_END}\n`);
  return `${HOME}${fitted.join("")}${ERASE_BELOW}`;
}
