/** Prints the text of the demo, in lines of at most 80 cells. Prints nothing with --json. */
import type { Context } from "../../cli/shell/command-spec.ts";
import { cut, type Paint, paint, safe, widthOf, wrap } from "../../text/render.ts";

const WIDTH = 80;
const INDENT = "   ";
const GAP = 2;

export class Narrator {
  private chapters = 0;

  constructor(private readonly ctx: Pick<Context, "out" | "json" | "colour">) {}

  line(text = ""): void {
    if (!this.ctx.json) this.ctx.out.line(text);
  }

  chapter(title: string): void {
    this.chapters += 1;
    this.line();
    this.line(this.paint("bold", `${this.chapters}. ${title}`));
  }

  say(text: string): void {
    for (const line of wrap(safe(text), WIDTH - INDENT.length)) this.line(INDENT + line);
  }

  /** Prints a command as a person would type it. */
  command(text: string): void {
    this.line(INDENT + this.paint("cyan", cut(safe(`$ ${text}`), WIDTH - INDENT.length)));
  }

  /** Prints a dropped file: its name, then as much of its content as fits. */
  file(name: string, text: string): void {
    const head = `${name.padEnd(14)} `;
    const body = cut(safe(text), WIDTH - INDENT.length - head.length);
    this.line(INDENT + this.paint("cyan", head) + body);
  }

  answer(text: string): void {
    this.line(INDENT + cut(safe(text), WIDTH - INDENT.length));
  }

  /** Prints a command and the names it lists, in columns like `ls`. */
  list(command: string, names: readonly string[]): void {
    this.command(command);
    if (names.length === 0) this.answer(this.paint("dim", "(empty)"));
    const shown = names.map((name) => safe(name));
    const cell = Math.max(...shown.map(widthOf)) + GAP;
    const perLine = Math.max(1, Math.floor((WIDTH - INDENT.length + GAP) / cell));
    const padded = shown.map((name) => name + " ".repeat(cell - widthOf(name)));
    for (let at = 0; at < padded.length; at += perLine)
      this.answer(
        padded
          .slice(at, at + perLine)
          .join("")
          .trimEnd(),
      );
  }

  event(atMs: number, task: string, text: string, how: Paint = "green"): void {
    const time = `${(atMs / 1000).toFixed(2)} s`.padStart(9);
    const head = `${time}  ${task.padEnd(11)}`;
    this.line(
      this.paint("dim", head.slice(0, 9)) +
        head.slice(9) +
        this.paint(how, cut(safe(text), WIDTH - head.length)),
    );
  }

  paint(how: Paint, text: string): string {
    return paint(this.ctx.colour, how, text);
  }
}
