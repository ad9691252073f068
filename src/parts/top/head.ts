/** The first lines of the screen: health, counts and rates. Also the last ones: the last action and the keys. Pure. */

import { inert } from "../../text/inert.ts";
import { clockTime } from "../../text/local-time.ts";
import {
  ago,
  countOf,
  countText,
  duration,
  type Paint,
  paint,
  widthOf,
} from "../../text/render.ts";
import type { Health, Overview } from "../../view/overview.ts";
import type { Column } from "../../view/timeline/lay-out.ts";
import { endOf, type Look, money, sized, sparkline, spread } from "./cells.ts";
import type { Frame, PastShown } from "./frame.ts";
import { type Prompt, pageOf } from "./state.ts";

const SPARK_MINUTES = 20;
/** So long a time the line of blocks shows. */
export const PAST_HOURS = 12;
const PAST_COLUMNS_MAX = 144;
const PAST_TEXT_WIDTH = 12;

const HEALTH_PAINTS: Readonly<Record<Health["state"], Paint>> = {
  live: "green",
  silent: "yellow",
  stopped: "yellow",
  none: "yellow",
  dead: "red",
  unknown: "yellow",
};

/** @param max at most this many lines */
export function headLines(frame: Frame, width: number, max: number): string[] {
  const { overview, trouble, look, nowMs } = frame;
  if (overview === undefined)
    return [sized(`mailchute top  ${inert(trouble ?? "looking …")}`, width)];
  const lines = [
    titleLine(overview, frame, width),
    sized(countsLine(overview), width),
    sized(ratesLine(overview, frame), width),
    ...(frame.past === undefined ? [] : [pastLine(frame.past.columns, frame.look, width)]),
  ];
  const urgent = urgentLine(overview, trouble, nowMs);
  if (urgent !== undefined) {
    const line = paint(look.colour, "yellow", sized(`! ${inert(urgent)}`, width));
    if (max < 3) return [titleLine(overview, frame, width), line].slice(0, max);
    lines.splice(1, 0, line);
  }
  return lines.slice(0, max);
}

function titleLine(o: Overview, frame: Frame, width: number): string {
  const { look, isReadOnly, trouble, nowMs } = frame;
  const words = trouble === undefined ? healthText(o.health) : "UNREADABLE";
  const colour = trouble === undefined ? HEALTH_PAINTS[o.health.state] : "red";
  const { today_usd_micro: spent, is_complete: isWhole } = o.cost;
  const right = [
    `${countText(o.slots.busy)}/${countText(o.slots.total)} slots`,
    ...(spent === null ? [] : [`${isWhole ? "" : ">"}${money(spent)} today`]),
    clockTime(nowMs),
  ].join("  ");
  const mode = `${o.paused === null ? "" : "  PAUSED"}${isReadOnly ? "  read only" : ""}`;
  const room = width - widthOf(`top  ${words}${mode}  ${right}`) - 2;
  if (room < 0) return sized(`top  ${words}${mode}  ${right}`, width);
  // The end of a path tells more than its beginning, so the beginning is cut.
  const dir = inert(o.state_dir);
  const place = widthOf(dir) <= room ? dir : room > 8 ? `…${endOf(dir, room - 1)}` : "";
  const name = paint(look.colour, "bold", "top");
  return `${name}  ${paint(look.colour, colour, words)}${mode}  ${sized(place, room)}  ${right}`;
}

function healthText({ state, text }: Health): string {
  if (state === "none") return text.toUpperCase();
  return inert(text).replace(/^\w+/, (word) => word.toUpperCase());
}

function countsLine({ counts }: Overview): string {
  const { waiting, ready, delayed, held, running, settling, done, failed } = counts;
  const parts = [
    `waiting ${countOf(waiting)}`,
    `ready ${countText(ready)}`,
    ...(delayed > 0 ? [`delayed ${countText(delayed)}`] : []),
    ...(held > 0 ? [`held ${countText(held)}`] : []),
    `running ${countText(running + settling)}`,
    `done ${countOf(done)}`,
    `failed ${countOf(failed)}`,
  ];
  return parts.join("  ");
}

function ratesLine({ minutes, run_time: time }: Overview, { look }: Frame): string {
  const spark = (values: readonly (number | null)[]): string =>
    sparkline(values.slice(-SPARK_MINUTES), look.signs);
  // The current minute has not ended, so the one before it is shown.
  const last = (values: readonly (number | null)[]): string => {
    const value = values.at(-2) ?? values.at(-1) ?? null;
    return value === null ? "–" : countText(value);
  };
  const runTime =
    time === null ? "run –" : `run p50 ${duration(time.p50_ms)} p95 ${duration(time.p95_ms)}`;
  return [
    `done/min ${spark(minutes.completed)} ${last(minutes.completed)}`,
    `failed/min ${last(minutes.failed)}`,
    runTime,
  ].join("   ");
}

/** As many columns as there is room for beside the texts; 0 on a screen that is too small for the line. */
export function pastColumns({ columns }: { columns: number }): number {
  return Math.max(0, Math.min(PAST_COLUMNS_MAX, columns - PAST_TEXT_WIDTH));
}

const PAST_PAINTS: Partial<Record<NonNullable<Column["worst"]>, Paint>> = {
  failed: "red",
  killed: "red",
  mark: "red",
  again: "yellow",
  wait: "yellow",
};

/** `last 12 h  ▁▂▅▅  ▂█`: how much ran; red where a run failed or a process died, yellow where it was tried again or waited. */
function pastLine(columns: PastShown["columns"], { signs, colour }: Look, width: number): string {
  const most = Math.max(1, ...columns.map((one) => one?.running ?? 0));
  const blocks = columns.map((one) => {
    if (one === null || one.worst === null) return " ";
    const level = Math.max(1, Math.round((one.running / most) * (signs.spark.length - 1)));
    const sign = signs.spark.charAt(one.worst === "wait" ? 0 : level);
    const paints = PAST_PAINTS[one.worst];
    return paints === undefined ? sign : paint(colour, paints, sign);
  });
  const text = `last ${PAST_HOURS} h  `;
  const used = widthOf(text) + blocks.length;
  return used > width ? sized(text, width) : text + blocks.join("") + sized("", width - used);
}

/** The fact that a person should see first. */
function urgentLine(o: Overview, trouble: string | undefined, nowMs: number): string | undefined {
  if (trouble !== undefined) return `${trouble}; what is shown is from ${ago(o.at_ms, nowMs)}`;
  const [first] = o.obstacles;
  return first === undefined ? undefined : `${first.what}; do: ${first.do}`;
}

/** The keys in the last line. On a narrow screen the last ones are left out first. */
const PANE_KEYS =
  "? help  q quit  enter open  / filter  r retry  c cancel  a answer  p pause  + - slots";
const GROUP_KEYS = "? help  q quit  esc back  enter open  r retry  c cancel";
const TASK_KEYS =
  "? help  q quit  esc back  up down scroll  f follow  / search  r retry  c cancel  o stderr  w wrap";
const READ_KEYS = "? help  q quit  esc back  enter open  / filter  tab pane";

export function footLines(frame: Frame, width: number, max: number): string[] {
  const { state, look, step, isReadOnly } = frame;
  const { prompt, note } = state;
  if (prompt !== undefined) {
    const lines = promptLines(prompt);
    return lines.map((line) => paint(look.colour, "bold", sized(line, width))).slice(-max);
  }
  const page = pageOf(state);
  const own = page === undefined ? PANE_KEYS : page.kind === "task" ? TASK_KEYS : GROUP_KEYS;
  const keys = whole(isReadOnly ? READ_KEYS : own, width);
  const filter = state.filter === "" ? "" : `filter: ${inert(state.filter)} (esc clears it)`;
  const said = note === "" ? step : inert(note);
  return [spread(said, filter, width), paint(look.colour, "dim", keys)].slice(-max);
}

/** As many keys as fit. */
function whole(keys: string, width: number): string {
  let line = "";
  for (const key of keys.split("  ")) {
    const longer = line === "" ? key : `${line}  ${key}`;
    if (widthOf(longer) > width) break;
    line = longer;
  }
  return sized(line, width);
}

function promptLines(prompt: Prompt): string[] {
  switch (prompt.kind) {
    case "input":
      return ["enter: done   esc: leave it", `${prompt.label}: ${inert(prompt.text)}_`];
    case "confirm": {
      const back = Object.hasOwn(prompt.deeds, "b") ? "   b: stop it, and put it back" : "";
      const yes = prompt.text.startsWith("End") ? "yes, it counts as failed" : "yes";
      return [prompt.text, `y: ${yes}${back}   any other key: no`];
    }
    case "number":
      return [
        `${prompt.text} Type the number ${prompt.count} and enter; any other key: no`,
        `> ${prompt.typed}_`,
      ];
  }
}
