/** Draws the lines of the four panes. Pure. */

import { inert } from "../../text/inert.ts";
import { logLine } from "../../text/log-line.ts";
import { ago, countText, cut, paint, widthOf } from "../../text/render.ts";
import type { Overview, RunningRow } from "../../view/overview.ts";
import { bar, clock, countOf, type Look, money, sized, spread, timeOfDay } from "./cells.ts";
import type { Frame } from "./frame.ts";
import type { Row, Shown } from "./rows.ts";
import { chosenIndex } from "./state.ts";

const TITLES = ["RUNNING", "WAITING, and why", "FAILED, by cause", "QUESTIONS, ALERTS"];
const NOTHING = ["nothing runs", "nothing waits", "nothing has failed", "nothing needs you"];
const ID_MIN = 8;

/** @param rows the number of lines for all panes together */
export function paneLines(frame: Frame, width: number, rows: number): string[] {
  const { panes, state } = frame;
  if (rows < 10) return onePane(frame, state.pane, width, rows);
  const counts = panes.map((pane) => pane.length);
  const heights = share(rows - panes.length, counts, state.pane);
  return panes.flatMap((_, pane) => onePane(frame, pane, width, 1 + (heights[pane] ?? 0)));
}

/** The number of lines for each pane: each gets a few, then the chosen one gets what it needs, then the others. */
export function share(rows: number, counts: readonly number[], chosen: number): number[] {
  const needs = counts.map((count) => Math.max(1, count));
  const heights = needs.map(() => 0);
  let left = Math.max(0, rows);
  const order = [chosen, ...needs.keys()].filter((pane, i, all) => all.indexOf(pane) === i);
  const give = (pane: number, upTo: number): void => {
    const more = Math.min(
      left,
      Math.max(0, Math.min(needs[pane] ?? 0, upTo) - (heights[pane] ?? 0)),
    );
    heights[pane] = (heights[pane] ?? 0) + more;
    left -= more;
  };
  for (const upTo of [1, 2, 3]) for (const pane of order) give(pane, upTo);
  give(chosen, rows);
  for (const pane of order) give(pane, rows);
  // Rows that no pane needs stay with the chosen pane, so that the panes below keep their place.
  heights[chosen] = (heights[chosen] ?? 0) + left;
  return heights;
}

function onePane(frame: Frame, pane: number, width: number, rows: number): string[] {
  const { panes, state, look, overview, nowMs } = frame;
  const list = panes[pane] ?? [];
  const isChosen = state.pane === pane;
  const room = Math.max(0, rows - 1);
  const cursor = state.cursors[pane] ?? { key: "", index: 0 };
  const index = chosenIndex(list, cursor);
  const { shown, from } = windowOf(list, index, room);
  const title = titleOf(frame, pane, { from, shown: shown.length, width });
  if (list.length === 0) {
    const nothing = state.filter === "" ? (NOTHING[pane] ?? "") : "nothing matches the filter";
    const text = overview === undefined ? "" : `  ${nothing}`;
    return padTo([title, paint(look.colour, "dim", sized(text, width))], rows, width);
  }
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
  const part =
    at.shown < list.length ? ` ${at.from + 1}-${at.from + at.shown} of ${list.length}` : "";
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
    default:
      return countText(list.length);
  }
}

interface Page {
  width: number;
  look: Look;
  nowMs: number;
}

/** Each row takes `width` cells, including the two for its mark. */
function drawRows(rows: readonly Row[], page: Page): string[] {
  const running = rows.flatMap(({ shown }) => (shown.kind === "running" ? [shown.running] : []));
  if (running.length > 0) return runningLines(running, page);
  return rows.map(({ shown, ids }) => sized(rowText(shown, ids, page), page.width - 2));
}

/** A column is left out when no row has a value for it, or when there is no room. */
function runningLines(rows: readonly RunningRow[], { width, look }: Page): string[] {
  const room = width - 2;
  const widest = (texts: readonly string[], max: number): number =>
    Math.min(max, Math.max(0, ...texts.map(widthOf)));
  const idWidth = Math.max(
    ID_MIN,
    widest(
      rows.map(({ id }) => inert(id)),
      room < 90 ? 20 : 32,
    ),
  );
  const hasAgents = room >= 60 && rows.some(({ agent }) => agent !== null);
  const agentOf = ({ agent }: RunningRow): string => inert(agent ?? "exec");
  const agentWidth = hasAgents ? widest(rows.map(agentOf), 10) : 0;
  const hasCost = room >= 70 && rows.some((row) => row.cost_usd_micro !== null);
  const hasBar = room >= 60 && rows.some((row) => (row.progress?.pct ?? null) !== null);
  return rows.map((row) => {
    const { pct = null } = row.progress ?? {};
    const cells = [
      sized(inert(row.id), idWidth),
      ...(room < 50 ? [] : [sized(row.attempt === 0 ? "" : `run ${row.attempt}`, 6)]),
      sized(row.age_ms === null ? "–" : clock(row.age_ms), 8, "right"),
      ...(agentWidth > 0 ? [sized(agentOf(row), agentWidth)] : []),
      ...(hasCost
        ? [sized(row.cost_usd_micro === null ? "–" : money(row.cost_usd_micro), 7, "right")]
        : []),
      ...(hasBar
        ? [sized(pct === null ? "" : `${bar(pct, 5, look.signs)} ${Math.floor(pct)} %`, 11)]
        : []),
      saying(row),
    ];
    return sized(cells.join(" "), room);
  });
}

function saying(row: RunningRow): string {
  const { is_alive: isAlive, progress, last_line: line, title, machine } = row;
  if (!isAlive) return "its process is dead";
  const text = [progress?.text ?? "", line ?? "", title].find((one) => one !== "");
  const said = text === undefined ? "(no output yet)" : logLine(text, false);
  return machine === null ? said : `at ${inert(machine)}: ${said}`;
}

function rowText(shown: Shown, ids: readonly string[], { width, nowMs }: Page): string {
  const room = width - 2;
  switch (shown.kind) {
    case "waiting": {
      const { count, text, tasks } = shown.group;
      const [first] = tasks;
      const next =
        first === undefined
          ? ""
          : `${first.due_ms !== null && first.due_ms > nowMs ? `in ${clock(first.due_ms - nowMs)}  ` : ""}${inert(first.id)}${first.why === "" ? "" : ` ${inert(first.why)}`}`;
      const head = `${sized(count === null ? "–" : countOf(count), 9, "right")}  ${inert(text)}`;
      return withMore(head, next, room);
    }
    case "failed": {
      const { count, kind, error, last_ms: lastMs } = shown.cause;
      const names = `${ids.slice(0, 2).map(inert).join(" ")}${ids.length > 2 ? ` +${ids.length - 2}` : ""}`;
      const head = `${sized(`${countText(count)}x`, 7, "right")}  ${sized(inert(kind), room < 70 ? 8 : 14)} `;
      const tail =
        room < 60 ? "" : `${timeOfDay(lastMs).slice(0, 5)}  ${cut(names, Math.floor(room / 3))}`;
      return head + spread(inert(error), tail, room - widthOf(head));
    }
    case "question": {
      const { id, question, asked_at_ms: askedMs } = shown.question;
      const since = askedMs === 0 ? "" : `asked ${ago(askedMs, nowMs)}`;
      return spread(`? ${inert(id)}  ${inert(question)}`, since, room);
    }
    case "obstacle":
      return `! ${inert(shown.obstacle.what)}`;
    case "alert":
      return `· ${timeOfDay(shown.alert.at_ms)} ${inert(shown.alert.message)}`;
    case "task": {
      const due = shown.due_ms === null ? "" : `  in ${clock(Math.max(0, shown.due_ms - nowMs))}`;
      return `${inert(shown.id)}${due}  ${inert(shown.text)}`;
    }
    case "running":
      return inert(shown.running.id);
  }
}

/** Adds `more` to the line if at least 8 cells are free. */
function withMore(head: string, more: string, room: number): string {
  const left = room - widthOf(head) - 2;
  return more === "" || left < 8 ? head : `${head}  ${cut(more, left)}`;
}

/** A row on the page of a group. */
export function taskRowLine(row: Row, page: Page): string {
  return sized(rowText(row.shown, row.ids, page), page.width - 2);
}
