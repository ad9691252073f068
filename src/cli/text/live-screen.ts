/**
 * Draws a view repeatedly on a terminal, for `--watch` and `top`. It uses the terminal's alternate screen. So no frame gets into the
 * scrollback, even when the width changes. At the end, even after a signal or a crash, the terminal shows what it showed before. A
 * frame writes only the lines that have changed, in one write.
 */
import { cutPainted, safePainted, widthOf, withoutColours } from "../../text/render.ts";

/** Enters the screen. Switches line wrap off: a character that is wider than we think must not move the lines below. */
const ENTER = "\x1b[?1049h\x1b[?25l\x1b[?7l";
const LEAVE = "\x1b[0m\x1b[?7h\x1b[?25h\x1b[?1049l";
/** Between these two, a terminal shows no half-drawn frame. A terminal that does not know them ignores them. */
const BEGIN = "\x1b[?2026h";
const END = "\x1b[?2026l";
const ERASE_LINE_END = "\x1b[K";
const ERASE_BELOW = "\x1b[J";
const ENDING = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

/** The used members of `TerminalWriter`. */
export interface Terminal {
  columns: number;
  rows: number;
  /** True while the terminal has not taken all of the last frame. */
  isBusy: boolean;
  write(text: string): unknown;
  on(event: "resize", listener: () => void): unknown;
  off(event: "resize", listener: () => void): unknown;
  /** Waits a short time until all is written. */
  finish(): void;
}

/** Code that reads keys while the screen is shown. It also changes the terminal's mode. */
export interface ScreenUser {
  /** Called each time that we take the terminal. */
  taken(): void;
  /** Called when we give the terminal back. Must not throw. */
  left(): void;
}

type LinesFor = (columns: number, rows: number) => readonly string[];

export class LiveScreen {
  private readonly user: ScreenUser | undefined;
  private linesFor: LinesFor = () => [];
  /** The lines that the terminal shows; undefined when not known. */
  private shown: readonly string[] | undefined;
  private isOpen = false;

  constructor(
    private readonly terminal: Terminal,
    user?: ScreenUser,
  ) {
    this.user = user;
  }

  /** Takes the screen until `close`, or until a signal ends this process. */
  open(): void {
    this.take();
    this.terminal.on("resize", this.redraw);
    for (const signal of ENDING) process.on(signal, this.end);
    process.on("SIGTSTP", this.suspend);
    process.on("SIGCONT", this.resume);
    process.on("exit", this.close);
    // Close the screen before Node prints the error. Otherwise the error would vanish with the screen.
    process.on("uncaughtExceptionMonitor", this.close);
  }

  readonly close = (): void => {
    this.terminal.off("resize", this.redraw);
    for (const signal of ENDING) process.off(signal, this.end);
    process.off("SIGTSTP", this.suspend);
    process.off("SIGCONT", this.resume);
    process.off("exit", this.close);
    process.off("uncaughtExceptionMonitor", this.close);
    this.leave();
  };

  /** @param linesFor returns the view for a size of the terminal; called again whenever the size changes */
  show(linesFor: LinesFor): void {
    this.linesFor = linesFor;
    this.draw();
  }

  /** Draws everything again, for a terminal on which another program has written. */
  readonly redraw = (): void => {
    this.shown = undefined;
    this.draw();
  };

  /** Gives the terminal back and stops the process, as the key Ctrl-Z does. */
  readonly suspend = (): void => {
    this.leave();
    process.kill(process.pid, "SIGSTOP");
  };

  /** Ends by the same signal, so that a shell sees what ended the process. */
  readonly end = (signal: NodeJS.Signals): void => {
    this.close();
    process.kill(process.pid, signal);
  };

  private readonly resume = (): void => {
    this.take();
    this.redraw();
  };

  private take(): void {
    if (this.isOpen) return;
    this.isOpen = true;
    this.user?.taken();
    this.terminal.write(ENTER);
  }

  private leave(): void {
    if (!this.isOpen) return;
    this.isOpen = false;
    this.terminal.write(LEAVE);
    this.terminal.finish();
    this.user?.left();
  }

  private draw(): void {
    // Leave out a frame while the terminal is busy. The next frame shows the newer state.
    if (!this.isOpen || this.terminal.isBusy) return;
    const { columns, rows } = this.terminal;
    const lines = fitRows(this.linesFor(columns, rows), rows);
    const frame = frameOf(this.shown, lines, { columns, rows });
    this.shown = lines;
    if (frame !== "") this.terminal.write(frame);
  }
}

/** Leaves out lines at the end that do not fit, because they would make the terminal scroll. */
export function fitRows(lines: readonly string[], rows: number): readonly string[] {
  const room = Math.max(2, rows);
  if (lines.length <= room) return lines;
  const more = lines.length - room + 1;
  return [...lines.slice(0, room - 1), `and ${more} more lines: mailchute status`];
}

/**
 * The text that turns one frame into the next; "" when nothing has changed. It cuts text that does not fit. Of the control sequences in
 * a line, only colours reach the terminal.
 * @param before the last frame; undefined when the terminal may show anything
 */
export function frameOf(
  before: readonly string[] | undefined,
  lines: readonly string[],
  { columns, rows }: Pick<Terminal, "columns" | "rows">,
): string {
  const changed = lines.flatMap((line, i) => {
    if (line === before?.[i]) return [];
    const text = cutPainted(safePainted(line), columns);
    // In the last cell the cursor would stand on the text, and erase it.
    const isFull = widthOf(withoutColours(text)) >= columns;
    return [`\x1b[${i + 1}H${text}${isFull ? "" : ERASE_LINE_END}`];
  });
  const isShorter = before === undefined || before.length > lines.length;
  const below = isShorter && lines.length < rows ? [`\x1b[${lines.length + 1}H${ERASE_BELOW}`] : [];
  const text = [...changed, ...below].join("");
  return text === "" ? "" : `${BEGIN}${text}${END}`;
}
