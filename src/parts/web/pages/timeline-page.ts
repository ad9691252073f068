/** The page of the timeline: who ran when, how each run ended, what waited, what it cost. Reads a bounded amount in each look. */
import type { Settings } from "../../../core/settings.ts";
import type { StateTree } from "../../../core/state-tree.ts";
import { JournalPast } from "../../../journal/past.ts";
import { duration } from "../../../text/render.ts";
import { DayCosts } from "../../../view/timeline/day-costs.ts";
import {
  COST_HEIGHT,
  DRAWN,
  layOut,
  layOutCosts,
  ROW_HEIGHT,
  ticksOf,
  WIDTH,
} from "../../../view/timeline/lay-out.ts";
import { type RunEnd, Timeline, type TimelineRun } from "../../../view/timeline/timeline.ts";
import {
  type Block,
  factsOf,
  type Look,
  linksOf,
  linkToTask,
  type Page,
  pathWith,
  say,
  shown,
  table,
  taskPath,
  timeOf,
  usd,
} from "../page.ts";

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;
const SPANS: readonly [name: string, text: string, ms: number][] = [
  ["15m", "15 min", 15 * MINUTE_MS],
  ["1h", "1 h", HOUR_MS],
  ["6h", "6 h", 6 * HOUR_MS],
  ["12h", "12 h", 12 * HOUR_MS],
  ["24h", "24 h", DAY_MS],
  ["7d", "7 d", 7 * DAY_MS],
];
const DEFAULT_SPAN = "12h";
const SPAN_MS_MIN = 1000;
const SPAN_MS_MAX = 31 * DAY_MS;
/** Journals that were last written before this are not read. */
const AGE_MS = 8 * DAY_MS;
const ROWS_MAX = 100;

/** How the end of a run looks as a pill. */
const ENDS: Readonly<Record<RunEnd | "running", Look>> = {
  running: "run",
  done: "good",
  failed: "bad",
  killed: "bad",
  again: "warn",
  cancelled: "warn",
  back: "soft",
};

interface Span {
  fromMs: number;
  toMs: number;
  nowMs: number;
  /** The name of the span, if it ends now. */
  name: string | undefined;
}

export class TimelinePage {
  private readonly timeline = new Timeline();
  private readonly past: JournalPast;
  private readonly costs: DayCosts;

  constructor(
    tree: StateTree,
    private readonly settings: Pick<Settings, "prices" | "budgets">,
  ) {
    this.costs = new DayCosts(tree, settings.prices);
    this.past = new JournalPast(tree.events, AGE_MS, (text) => this.timeline.addText(text));
  }

  /** @param query `over`: a span that ends now; or `from` and `to` (epoch ms) */
  make(query: URLSearchParams, nowMs: number): Page {
    this.past.look(nowMs);
    const span = spanOf(query, nowMs);
    const { knownFromMs } = this.timeline;
    const notes: Block[] = [];
    if (!this.past.isComplete) notes.push(say("the journals are being read: more is to come"));
    if (knownFromMs !== null && knownFromMs > span.fromMs)
      notes.push(factsOf([["nothing is known before", timeOf(knownFromMs)]]));
    return {
      title: "Timeline",
      command: "mailchute report --format html",
      blocks: [spanLinks(span), this.drawingOf(span), ...notes, this.tableOf(span)],
    };
  }

  close(): void {
    this.past.close();
    this.costs.close();
  }

  private drawingOf(span: Span): Block {
    const rows = layOut(this.timeline, span).map(({ lane, bars }) => ({
      name: shown(lane),
      height: ROW_HEIGHT,
      shapes: bars.map(({ look, box, tip, id, text }) => ({
        is: "band" as const,
        look,
        box,
        tip: shown(tip),
        ...(id === undefined ? {} : { to: taskPath(id) }),
        ...(text === undefined ? {} : { text: shown(text) }),
      })),
      limits: [],
    }));
    const { day_usd, day_hard_usd } = this.settings.budgets;
    const points = this.costs.look(span.fromMs, span.toMs);
    const cost = layOutCosts(points, span, { day_usd, day_hard_usd });
    const costs = cost && {
      name: `cost of the day: ${usd(cost.last)}`,
      height: COST_HEIGHT,
      shapes: [{ is: "line" as const, look: "other", d: cost.d }],
      limits: cost.limits,
    };
    return {
      kind: "timeline",
      title: "Timeline",
      from_ms: span.fromMs,
      to_ms: span.toMs,
      rows: costs === undefined ? rows : [...rows, costs],
      ticks: ticksOf(span),
      legend: Object.values(DRAWN).map(({ look, top, height, word }) => ({
        text: word,
        look,
        box: [top, height],
      })),
    };
  }

  /** The same as text: what went wrong first, then the latest runs. */
  private tableOf({ fromMs, toMs, nowMs }: Span): Block {
    const inSpan = this.timeline.runs.filter(
      (run) => run.from_ms < toMs && (run.to_ms ?? nowMs) >= fromMs,
    );
    const isBad = ({ end }: TimelineRun): boolean => end === "failed" || end === "killed";
    const bad = inSpan.filter(isBad).reverse();
    const others = inSpan.filter((run) => !isBad(run)).reverse();
    const rows = [...bad, ...others].slice(0, ROWS_MAX);
    const some = inSpan.length > ROWS_MAX ? `, ${ROWS_MAX} of them here` : "";
    const cells = rows.map((run) => [
      linkToTask(run.id, run.title),
      shown(run.lane),
      String(run.attempt),
      timeOf(run.from_ms),
      duration((run.to_ms ?? nowMs) - run.from_ms),
      { look: ENDS[run.end ?? "running"], word: DRAWN[run.end ?? "running"].word },
      shown(run.why),
    ]);
    const columns = ["task", "who", "run", "from", "took", "end", "why"];
    const title = `Runs in this time: ${inSpan.length}${some}`;
    return table(title, columns, cells, "nothing ran in this time");
  }
}

function spanOf(query: URLSearchParams, nowMs: number): Span {
  const from = Number(query.get("from"));
  const to = Number(query.get("to"));
  if (from > 0 && to - from >= SPAN_MS_MIN && Number.isFinite(to) && to < 1e14)
    return {
      fromMs: Math.floor(Math.max(from, to - SPAN_MS_MAX)),
      toMs: Math.floor(to),
      nowMs,
      name: undefined,
    };
  const found = SPANS.find(([name]) => name === (query.get("over") ?? DEFAULT_SPAN));
  const [name, , ms] = found ?? ["12h", "", 12 * HOUR_MS];
  // The end moves on in steps that a person can see, so that the drawing is the same from look to look.
  const step = ms / WIDTH;
  const toMs = Math.ceil(nowMs / step) * step;
  return { fromMs: toMs - ms, toMs, nowMs, name };
}

function spanLinks({ fromMs, toMs, nowMs, name }: Span): Block {
  const ms = toMs - fromMs;
  const at = (text: string, from: number, to: number): [text: string, to: string] => [
    text,
    pathWith("/timeline", { from: String(Math.round(from)), to: String(Math.round(to)) }),
  ];
  return linksOf("time that is shown", [
    ...SPANS.map(
      ([one, text]) =>
        [`last ${text}`, pathWith("/timeline", { over: one }), one === name] as const,
    ),
    at("← earlier", fromMs - ms / 2, toMs - ms / 2),
    ...(toMs >= nowMs ? [] : [at("later →", fromMs + ms / 2, toMs + ms / 2)]),
    ...(ms / 2 < SPAN_MS_MIN ? [] : [at("zoom in", fromMs + ms / 4, toMs - ms / 4)]),
    at("zoom out", fromMs - ms / 2, toMs + ms / 2),
  ]);
}
