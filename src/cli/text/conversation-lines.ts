/** Formats an entry of a conversation: its time, its mark and its text, in lines that fit the terminal. Pure. */
import type { Entry, EntryKind } from "../../agents/stream/conversation.ts";
import { clockTime } from "../../text/local-time.ts";
import { fold, type Paint, paint, safe, widthOf } from "../../text/render.ts";

interface Look {
  mark: string;
  paint?: Paint;
}

const LOOKS: Readonly<Record<EntryKind, Look>> = {
  session: { mark: "·", paint: "dim" },
  asked: { mark: ">", paint: "bold" },
  said: { mark: " " },
  thought: { mark: "·", paint: "dim" },
  call: { mark: "*", paint: "cyan" },
  result: { mark: "|", paint: "dim" },
  failure: { mark: "!", paint: "red" },
  change: { mark: "+", paint: "green" },
  notice: { mark: "·", paint: "dim" },
  limit: { mark: "!", paint: "yellow" },
  end: { mark: "·", paint: "dim" },
  other: { mark: "?", paint: "dim" },
};

export interface Page {
  /** Cells of a line; undefined: lines are not wrapped, as in a file or pipe. */
  width: number | undefined;
  colour: boolean;
}

/** @param atMs when the entry came (epoch ms); undefined when that is not known */
export function entryLines(entry: Entry, atMs: number | undefined, page: Page): string[] {
  const { mark, paint: how } = LOOKS[entry.kind];
  const time = atMs === undefined ? " ".repeat(8) : clockTime(atMs);
  const head = `${paint(page.colour, "dim", time)} ${mark} `;
  const indent = " ".repeat(11);
  const room = page.width === undefined ? undefined : Math.max(20, page.width - 11);
  const lines = entry.text
    .split("\n")
    .flatMap((line) => broken(safe(line.replaceAll("\t", "    ").trimEnd()), room));
  // Show a call in one line. Only spoken text is shown in full.
  const shown = entry.kind === "call" && lines.length > 1 ? [shortened(lines[0] ?? "")] : lines;
  return shown.map((line, index) => {
    const text = how === undefined ? line : paint(page.colour, how, line);
    return `${index === 0 ? head : indent}${text}`.trimEnd();
  });
}

function broken(line: string, room: number | undefined): string[] {
  return room === undefined || widthOf(line) <= room ? [line] : fold(line, room);
}

function shortened(line: string): string {
  return `${line.slice(0, -1)}…`;
}
