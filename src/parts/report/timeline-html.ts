/** Draws the timeline of a report as HTML without scripts: each row is a small SVG. Pure. */
import type { DayBudget } from "../../core/budget.ts";
import { html } from "../../text/html.ts";
import type { CostPoint } from "../../view/timeline/day-costs.ts";
import {
  COST_HEIGHT,
  DRAWN,
  layOut,
  layOutCosts,
  ROW_HEIGHT,
  ticksOf,
  tickText,
  WIDTH,
} from "../../view/timeline/lay-out.ts";
import type { Timeline } from "../../view/timeline/timeline.ts";

export interface Drawn {
  timeline: Timeline;
  costs: readonly CostPoint[];
  budgets: DayBudget;
  fromMs: number;
  toMs: number;
  nowMs: number;
}

export const TIMELINE_STYLE = `.lane{display:grid;grid-template-columns:9rem 1fr;gap:.5rem;font-size:.8rem;align-items:center}
.lane>span{overflow:hidden;text-overflow:ellipsis;white-space:nowrap}.lane>div{position:relative}.lane svg{display:block;width:100%;background:#8881}
.lane b,.lane time{position:absolute;font:11px/14px system-ui,sans-serif;white-space:nowrap;overflow:hidden;padding-left:3px;box-sizing:border-box}
.lane b{color:#fff;pointer-events:none}.axis{height:1.4rem}.axis time{border-left:1px solid #8888}
path{fill:none;stroke:#8884;vector-effect:non-scaling-stroke}.cost{stroke:#7a3e91;stroke-width:2}.limit{stroke:#8a5a00}
.good{fill:#0072b2}.bad{fill:#b04000}.warn{fill:#8a5a00}.other{fill:#7a3e91}.soft{fill:#6e7781}
.legend svg{width:12px;height:${ROW_HEIGHT}px;vertical-align:middle;margin:0 .3em 0 1em}`;

/** Nothing when nothing ran or waited. */
export function timelineHtml(drawn: Drawn): string[] {
  const { timeline, costs, budgets, fromMs, toMs, nowMs } = drawn;
  const span = { fromMs, toMs, nowMs: Math.min(nowMs, toMs) };
  const rows = layOut(timeline, span);
  if (rows.length === 0) return [];
  const ticks = ticksOf(span);
  const grid = (height: number): string =>
    ticks.map(([x]) => `<path d="M${x} 0V${height}"/>`).join("");
  const lane = (name: string, height: number, shapes: string, beside = ""): string =>
    `<div class="lane"><span title="${html(name)}">${html(name)}</span><div>` +
    `<svg viewBox="0 0 ${WIDTH} ${height}" height="${height}" preserveAspectRatio="none">${grid(height)}${shapes}</svg>${beside}</div></div>`;
  const place = ([x, y, width, height]: readonly number[]): string =>
    `left:${(x ?? 0) / 10}%;top:${y}px;width:${(width ?? 0) / 10}%;height:${height}px`;
  const lanes = rows.map(({ lane: name, bars }) => {
    const shapes = bars.map(({ look, box, tip }) => rect(look, box, html(tip)));
    const words = bars.map(({ box, text }) =>
      text === undefined ? "" : `<b style="${place(box)}">${html(text)}</b>`,
    );
    return lane(name, ROW_HEIGHT, shapes.join(""), words.join(""));
  });
  const { day_usd = 0, day_hard_usd = 0 } = budgets;
  const cost = layOutCosts(costs, span, { day_usd, day_hard_usd });
  if (cost !== undefined) {
    const limits = cost.limits.map(
      ({ y, text }) =>
        `<path class="limit" d="M0 ${y}H${WIDTH}"><title>${html(text)}</title></path>`,
    );
    const line = `<path class="cost" d="${cost.d}"/>`;
    const name = `cost of the day: $${(cost.last / 1e6).toFixed(2)}`;
    lanes.push(lane(name, COST_HEIGHT, limits.join("") + line));
  }
  const axis = ticks.map(
    ([x, atMs]) => `<time style="left:${x / 10}%">${tickText(atMs, toMs - fromMs)}</time>`,
  );
  const legend = Object.values(DRAWN).map(
    ({ look, top, height, word }) =>
      `<svg viewBox="0 0 12 ${ROW_HEIGHT}">${rect(look, [0, top, 12, height], word)}</svg>${word}`,
  );
  return [
    "<h2>Timeline</h2>",
    ...lanes,
    `<div class="lane"><span></span><div class="axis">${axis.join("")}</div></div>`,
    `<p class="legend">${legend.join("")}</p>`,
  ];
}

function rect(look: string, [x, y, width, height]: readonly number[], tip: string): string {
  return `<rect class="${look}" x="${x}" y="${y}" width="${width}" height="${height}"><title>${tip}</title></rect>`;
}
