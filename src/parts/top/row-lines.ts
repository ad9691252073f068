/** Draws rows as lines: titles before ids, in columns. Pure. */
import { inert } from "../../text/inert.ts";
import { clockTime } from "../../text/local-time.ts";
import { logLine } from "../../text/log-line.ts";
import { ago, countOf, countText, cut, type Paint, paint, widthOf } from "../../text/render.ts";
import type { GroupView, RunningRow, WaitingGroup } from "../../view/overview.ts";
import type { TimelineRun } from "../../view/timeline/timeline.ts";
import { bar, clock, type Look, money, named, sized, spread } from "./cells.ts";
import type { Row, Shown } from "./rows.ts";

const CELL_MAX = 16;
/** A narrower screen shows ids without titles, and fewer columns; from the second width on there is room for kinds and reasons. */
const NARROW = 60;
const ROOMY = 100;
/** The part of a line that names get beside a text. */
const NAMES_SHARE = 0.6;

interface Page {
  width: number;
  look: Look;
  nowMs: number;
}

/** What a line shows from left to right. A cell that is empty in all lines is left out; numbers stand at the right of their cell. */
interface Line {
  title: string;
  id: string;
  cells?: readonly string[];
  rest: string;
  how?: Paint;
}

/** Each line takes `width` cells with the two for its mark. */
export function drawRows(rows: readonly Row[], page: Page): string[] {
  const room = page.width - 2;
  const all = rows.map((row) => lineOf(row.shown, page));
  const lines = all.filter((line) => typeof line !== "string");
  const widest = (textOf: (line: Line) => string): number =>
    Math.max(0, ...lines.map((line) => widthOf(textOf(line))));
  const widths = (lines[0]?.cells ?? []).map((_, i) =>
    Math.min(
      CELL_MAX,
      widest(({ cells }) => cells?.[i] ?? ""),
    ),
  );
  const used = widths.reduce((sum, width) => sum + (width > 0 ? width + 1 : 0), 0);
  const share = lines.every(({ rest }) => rest === "") ? 1 : NAMES_SHARE;
  const titles = page.width < NARROW ? 0 : widest(({ title }) => title);
  const wanted = widest(({ id }) => id) + (titles > 0 ? titles + 1 : 0);
  const names = Math.max(0, Math.min(Math.floor((room - used) * share), wanted));
  return all.map((line) => {
    if (typeof line === "string") return sized(line, room);
    const { title, id, cells = [], rest, how } = line;
    const name = named(titles > 0 ? title : "", id, names);
    const texts = [name, ...widths.map((width, i) => aligned(cells[i] ?? "", width)), rest];
    const drawn = sized(texts.filter((text) => text !== "").join(" "), room);
    return how === undefined ? drawn : paint(page.look.colour, how, drawn);
  });
}

function aligned(text: string, width: number): string {
  return sized(text, width, /^[\d$–]/.test(text) ? "right" : "left");
}

function lineOf(shown: Shown, page: Page): Line | string {
  const { nowMs, width } = page;
  switch (shown.kind) {
    case "running":
      return runningLine(shown.running, page);
    case "failed": {
      const { count, kind, error, last_ms: lastMs, tasks } = shown.cause;
      const id = tasks.at(-1) ?? "";
      return {
        title: inert(shown.titles[id] ?? ""),
        id: inert(id),
        cells: [
          count > 1 ? `${countText(count)}x` : "",
          ago(lastMs, nowMs),
          width < ROOMY ? "" : inert(kind),
        ],
        rest: inert(error),
      };
    }
    case "ended":
      return endedLine(shown.run, page);
    case "task": {
      const { id, title, text, due_ms: due } = shown;
      const when = due === null ? "" : `in ${clock(Math.max(0, due - nowMs))}  `;
      return { title: inert(title), id: inert(id), rest: `${when}${inert(text)}` };
    }
    case "group": {
      const { counts, texts } = groupTexts(shown.group, page.look);
      const id = `${shown.group.kind} ${inert(shown.group.name)}`;
      return { title: "", id, cells: counts, rest: texts.join("; ") };
    }
    case "waiting":
      return waitingText(shown.group, width - 2, nowMs);
    case "question": {
      const { id, question, asked_at_ms: askedMs } = shown.question;
      const since = askedMs === 0 ? "" : `asked ${ago(askedMs, nowMs)}`;
      return spread(`? ${inert(id)}  ${inert(question)}`, since, width - 2);
    }
    case "obstacle":
      return `! ${inert(shown.obstacle.what)}`;
    case "alert":
      return `· ${clockTime(shown.alert.at_ms)} ${inert(shown.alert.message)}`;
  }
}

function runningLine(row: RunningRow, { width, look }: Page): Line {
  const { attempt, age_ms: ageMs, agent, cost_usd_micro: cost } = row;
  const { pct = null } = row.progress ?? {};
  const share = pct === null ? "" : `${Math.floor(pct)} %`;
  const more = [
    inert(agent ?? ""),
    cost === null ? "" : money(cost),
    pct === null || width < ROOMY ? share : `${bar(pct, 5, look.signs)} ${share}`,
  ];
  return {
    title: inert(row.title),
    id: inert(row.id),
    cells: [
      width < NARROW || attempt < 2 ? "" : `run ${attempt}`,
      ageMs === null ? "–" : clock(ageMs),
      ...(width < NARROW ? [] : more),
    ],
    rest: saying(row),
  };
}

function saying(row: RunningRow): string {
  const { is_alive: isAlive, progress, last_line: line, machine } = row;
  if (!isAlive) return "its process is dead";
  const text = [progress?.text ?? "", line ?? ""].find((one) => one !== "");
  const said = text === undefined ? "(no output yet)" : logLine(text, false);
  return machine === null ? said : `at ${inert(machine)}: ${said}`;
}

function endedLine(run: TimelineRun, { width, nowMs }: Page): Line {
  const { id, title, end, why, from_ms: fromMs, to_ms: toMs } = run;
  const atMs = toMs ?? fromMs;
  const took = atMs > fromMs ? clock(atMs - fromMs) : "–";
  return {
    title: inert(title),
    id: inert(id),
    cells: [end ?? "", width < NARROW ? "" : took, ago(atMs, nowMs)],
    rest: width < ROOMY ? "" : inert(why),
    ...(end === "failed" && { how: "red" }),
  };
}

export function groupTexts(group: GroupView, { signs }: Look) {
  const { kind, name, slots, waiting, in_work: taken, spent_usd_micro: spent, why } = group;
  const count = (number: number | null): string => (number === null ? "–" : countText(number));
  const reason = why?.replace(`${kind} ${name}`, "").replace(/^(?: is|:) /, "");
  return {
    counts: [
      `${count(taken)}${slots === null ? "" : ` of ${count(slots)}`} in work`,
      slots && taken !== null ? bar((100 * taken) / slots, 5, signs) : "",
      `${count(waiting)} wait`,
      spent === null ? "" : `${money(spent)} today`,
    ],
    texts: [
      ...(reason === undefined ? [] : [inert(reason)]),
      ...(group.rate === null ? [] : [`at most ${group.rate}`]),
      ...(group.limits.length === 0 ? [] : [`limits ${group.limits.map(inert).join(" ")}`]),
    ],
  };
}

function waitingText({ count, text, tasks }: WaitingGroup, room: number, nowMs: number): string {
  const head = `${sized(count === null ? "–" : countOf(count), 9, "right")}  ${inert(text)}`;
  const [first] = tasks;
  const left = room - widthOf(head) - 2;
  if (first === undefined || left < 8) return head;
  const { why, due_ms: due } = first;
  const [title, id] = [inert(first.title ?? ""), inert(first.id)];
  const when = due !== null && due > nowMs ? `in ${clock(due - nowMs)}  ` : "";
  const width = Math.floor((left - widthOf(when)) * (why === "" ? 1 : NAMES_SHARE));
  const name = named(title, id, Math.min(width, widthOf(title) + widthOf(id) + 1)).trim();
  return `${head}  ${cut(`${when}${name}${why === "" ? "" : ` ${inert(why)}`}`, left)}`;
}
