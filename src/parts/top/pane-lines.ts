/** Draws the panes, one below the other. Pure. */
import { countOf, countText, cut, paint, widthOf } from "../../text/render.ts";
import type { Overview } from "../../view/overview.ts";
import type { Look } from "./cells.ts";
import type { Frame } from "./frame.ts";
import { drawRows } from "./row-lines.ts";
import { PANES, type Row } from "./rows.ts";
import { chosenIndex } from "./state.ts";

const TITLES = [
  "RUNNING",
  "WAITING, and why",
  "FAILED, by cause, newest first",
  "NEEDS YOU, and alerts of the last day",
  "JUST ENDED",
  "GROUPS, LIMITS",
];
const NOTHING = [
  "nothing runs",
  "nothing waits",
  "nothing has failed",
  "nothing needs you",
  "nothing has ended in the last hours",
  "config.yaml names none",
];
/** The lines that a pane gets before others get more, and in which order: what needs you, what runs and what has failed come first. */
const LEAST = [3, 2, 3, 2, 2, 1];
const ORDER = [3, 0, 2, 1, 4, 5];

/** @param rows the number of lines for all panes together @param count only the first panes */
export function paneLines(
  frame: Frame,
  width: number,
  rows: number,
  count: number = PANES.length,
): string[] {
  const { state } = frame;
  if (rows < 12) return onePane(frame, state.pane, width, rows);
  const panes = frame.panes.slice(0, count);
  const counts = panes.map((pane) => pane.length);
  const heights = share(rows - panes.length, counts, state.pane);
  return panes.flatMap((_, pane) => onePane(frame, pane, width, 1 + (heights[pane] ?? 0)));
}

/** The number of lines for each pane below its title: each gets a few, then the chosen one gets what it needs, then the others. */
export function share(rows: number, counts: readonly number[], chosen: number): number[] {
  const heights = counts.map(() => 0);
  let left = Math.max(0, rows);
  const order = [chosen, ...ORDER].filter(
    (pane, i, all) => pane < counts.length && all.indexOf(pane) === i,
  );
  const give = (pane: number, upTo: number): void => {
    const more = Math.min(
      left,
      Math.max(0, Math.min(counts[pane] ?? 0, upTo) - (heights[pane] ?? 0)),
    );
    heights[pane] = (heights[pane] ?? 0) + more;
    left -= more;
  };
  for (const upTo of [1, 2, 3])
    for (const pane of order) give(pane, Math.min(upTo, LEAST[pane] ?? 0));
  for (const pane of order) give(pane, rows);
  // Rows that no pane needs stay with the chosen pane, so that the panes below keep their place; with the last one if it is not here.
  const keeper = Math.min(chosen, heights.length - 1);
  return heights.map((height, pane) => (pane === keeper ? height + left : height));
}

export function onePane(frame: Frame, pane: number, width: number, rows: number): string[] {
  const { panes, state, look, nowMs } = frame;
  const list = panes[pane] ?? [];
  const isChosen = state.pane === pane;
  const room = Math.max(0, rows - 1);
  const cursor = state.cursors[pane] ?? { key: "", index: 0 };
  const index = chosenIndex(list, cursor);
  const { shown, from } = windowOf(list, index, room);
  const title = titleOf(frame, pane, { from, shown: shown.length, width });
  const lines = drawRows(shown, { width, look, nowMs }).map((line, i) =>
    marked(line, isChosen && from + i === index, look),
  );
  return padTo([title, ...lines], rows, width);
}

/** The rows around the chosen one. */
export function windowOf<T>(list: readonly T[], index: number, room: number) {
  const from = Math.max(0, Math.min(index - Math.floor(room / 2), list.length - room));
  return { from, shown: list.slice(from, from + room) };
}

export function marked(line: string, isHere: boolean, { colour, signs }: Look): string {
  return isHere ? paint(colour, "inverse", `${signs.here} ${line}`) : `  ${line}`;
}

function padTo(lines: readonly string[], rows: number, width: number): string[] {
  const padded = [...lines];
  while (padded.length < rows) padded.push(" ".repeat(width));
  return padded.slice(0, rows);
}

function titleOf(
  { panes, state, look, overview }: Frame,
  pane: number,
  at: { from: number; shown: number; width: number },
): string {
  const list = panes[pane] ?? [];
  const isChosen = state.pane === pane;
  const name = `${pane + 1} ${TITLES[pane] ?? ""} (${totalOf(overview, pane, list)})`;
  const nothing = state.filter === "" ? (NOTHING[pane] ?? "") : "nothing matches the filter";
  let part = "";
  if (list.length === 0 && overview !== undefined) part = ` ${nothing} `;
  else if (at.shown > 0 && at.shown < list.length)
    part = ` ${at.from + 1}-${at.from + at.shown} of ${list.length}`;
  const { line, here } = look.signs;
  const text = `${isChosen ? here : line}${name}${part}`;
  const whole = cut(text, at.width);
  const rule = line.repeat(Math.max(0, at.width - widthOf(whole)));
  return paint(look.colour, isChosen ? "bold" : "dim", whole + rule);
}

/** The number in the title of a pane, which may be higher than its number of rows. */
function totalOf(overview: Overview | undefined, pane: number, list: readonly Row[]): string {
  if (overview === undefined) return "?";
  const { counts, failures } = overview;
  switch (pane) {
    case 0:
      return countText(counts.running + counts.elsewhere);
    case 1: {
      const { waiting, ready, delayed, held } = counts;
      return countOf({ ...waiting, count: waiting.count + ready + delayed + held });
    }
    case 2: {
      if (failures.is_all || failures.grouped === 0) return countOf(counts.failed);
      return `the latest ${countText(failures.grouped)} of ${countOf(counts.failed)}`;
    }
    case 5: {
      const held = list.filter(({ shown }) => shown.kind === "group" && shown.group.why !== null);
      return `${countText(list.length)}${held.length === 0 ? "" : `, ${held.length} held`}`;
    }
    default:
      return countText(list.length);
  }
}
