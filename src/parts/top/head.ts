/** The first lines of the screen: how fresh all this is, counts, rates; and the last ones: what was done, and the keys. Pure. */
import { ago, countText, cut, duration, type Paint, paint, widthOf } from "../../text/render.ts";
import type { Health, Overview } from "../../view/overview.ts";
import { countOf, inert, money, sized, sparkline, spread, timeOfDay } from "./cells.ts";
import type { Frame } from "./frame.ts";
import { type Prompt, pageOf } from "./state.ts";

const SPARK_MINUTES = 20;

const HEALTH_PAINTS: Readonly<Record<Health["state"], Paint>> = {
  live: "green",
  silent: "yellow",
  stopped: "yellow",
  none: "yellow",
  dead: "red",
  unknown: "yellow",
};

/** @param max at most so many lines */
export function headLines(frame: Frame, width: number, max: number): string[] {
  const { overview, trouble, look, nowMs } = frame;
  if (overview === undefined)
    return [sized(`mailchute top  ${inert(trouble ?? "looking …")}`, width)];
  const lines = [
    titleLine(overview, frame, width),
    sized(countsLine(overview), width),
    sized(ratesLine(overview, frame), width),
  ];
  const urgent = urgentLine(overview, trouble, nowMs);
  if (urgent !== undefined) {
    const line = paint(look.colour, "yellow", sized(`! ${inert(urgent)}`, width));
    if (max < 3) return [titleLine(overview, frame, width), line].slice(0, max);
    lines.splice(1, 0, line);
  }
  return lines.slice(0, max);
}

function titleLine(
  o: Overview,
  { look, isReadOnly, trouble, nowMs }: Frame,
  width: number,
): string {
  const { state, text } = o.health;
  const words =
    trouble === undefined ? inert(text).replace(/^\w+/, (w) => w.toUpperCase()) : "UNREADABLE";
  const health = paint(look.colour, trouble === undefined ? HEALTH_PAINTS[state] : "red", words);
  const slots = `${countText(o.slots.busy)}/${countText(o.slots.total)} slots`;
  const cost =
    o.cost.today_usd_micro === null
      ? ""
      : `  ${o.cost.is_complete ? "" : "≥"}${money(o.cost.today_usd_micro)} today`;
  const right = `${slots}${cost}  ${timeOfDay(nowMs)}`;
  const mode = `${isReadOnly ? "  read only" : ""}${o.paused === null ? "" : "  PAUSED"}`;
  const left = `${paint(look.colour, "bold", "top")}  ${health}${mode}  `;
  const room = width - widthOf(`top  ${words}${mode}  `) - widthOf(right) - 1;
  // The end of a path says more than its beginning.
  const dir = inert(o.state_dir);
  const place = widthOf(dir) <= room ? dir : room > 8 ? `…${endOf(dir, room - 1)}` : "";
  if (room < 0) return cut(`top  ${words}${mode}  ${right}`, width);
  return `${left}${sized(place, room)} ${right}`;
}

function endOf(text: string, width: number): string {
  const characters = [...text];
  while (widthOf(characters.join("")) > width) characters.shift();
  return characters.join("");
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
  // The minute that goes on says little: the one before it is whole.
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

/** The one thing that a person should see first. */
function urgentLine(o: Overview, trouble: string | undefined, nowMs: number): string | undefined {
  if (trouble !== undefined) return `${trouble}; what is shown is from ${ago(o.at_ms, nowMs)}`;
  const [first] = o.obstacles;
  return first === undefined ? undefined : `${first.what}; do: ${first.do}`;
}

const PANE_KEYS =
  "enter open  / filter  r retry  c cancel  p pause  +/- workers  a answer  ? help  q quit";
const GROUP_KEYS = "enter open  r retry  c cancel  esc back  ? help  q quit";
const TASK_KEYS =
  "up/down scroll  f follow  o stderr  w wrap  / search  r retry  c cancel  esc back  ? help  q quit";
const READ_KEYS = "enter open  esc back  tab pane  / filter  ? help  q quit";

export function footLines(frame: Frame, width: number, max: number): string[] {
  const { state, look, step, isReadOnly } = frame;
  const { prompt, note } = state;
  if (prompt !== undefined) {
    const lines = promptLines(prompt);
    return lines.map((line) => paint(look.colour, "bold", sized(line, width))).slice(-max);
  }
  const page = pageOf(state);
  const own = page === undefined ? PANE_KEYS : page.kind === "task" ? TASK_KEYS : GROUP_KEYS;
  const keys = sized(isReadOnly ? READ_KEYS : own, width);
  const filter = state.filter === "" ? "" : `filter: ${inert(state.filter)} (esc clears it)`;
  const said = note === "" ? step : inert(note);
  return [spread(said, filter, width), paint(look.colour, "dim", keys)].slice(-max);
}

function promptLines(prompt: Prompt): string[] {
  switch (prompt.kind) {
    case "input":
      return ["enter: done   esc: leave it", `${prompt.label}: ${inert(prompt.text)}_`];
    case "confirm": {
      const back = Object.hasOwn(prompt.deeds, "b") ? "   b: put it back" : "";
      return [prompt.text, `y: yes${back}   any other key: no`];
    }
    case "number":
      return [
        `${prompt.text} Type the number ${prompt.count} and enter; any other key: no`,
        `> ${prompt.typed}_`,
      ];
  }
}
