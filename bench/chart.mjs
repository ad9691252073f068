/** The rates of a run as bars, in an SVG that is readable on light and dark pages. Pure. */
import { isBefore, isOurs } from "./report.mjs";

const WIDTH = 760;
const LABEL = 290;
const BAR_HEIGHT = 16;
const LINE_HEIGHT = 22;
const TITLE_HEIGHT = 34;
const NUMBER_ROOM = 90;

/** Bars of a group share a scale; ours are drawn strong. Rows without `chart` are left out. */
export function drawChart(report) {
  const groups = report.rows
    .filter(({ chart, disk }) => chart !== undefined && disk === "ext4")
    .map(({ title, chart, contestants }) => ({
      title: title.replaceAll("`", ""),
      bars: contestants
        .filter((one) => Number.isFinite(one.figures[chart]) && !isBefore(one))
        .map((one) => ({ name: one.name, value: one.figures[chart], isOurs: isOurs(one) })),
    }))
    .filter(({ bars }) => bars.length > 0);
  const parts = [];
  let y = 8;
  for (const { title, bars } of groups) {
    y += TITLE_HEIGHT;
    parts.push(`<text class="title" x="8" y="${y - 12}">${escapeXml(title)}, tasks/s</text>`);
    const max = Math.max(...bars.map(({ value }) => value));
    for (const { name, value, isOurs } of bars) {
      const length = Math.max(1, (value / max) * (WIDTH - LABEL - NUMBER_ROOM));
      const kind = isOurs ? "ours" : "other";
      const middle = y + BAR_HEIGHT - 4;
      parts.push(
        `<text class="label" x="${LABEL - 8}" y="${middle}" text-anchor="end">${escapeXml(name)}</text>`,
        `<rect class="${kind}" x="${LABEL}" y="${y}" width="${length.toFixed(1)}" height="${BAR_HEIGHT}" rx="2"/>`,
        `<text class="label" x="${(LABEL + length + 6).toFixed(1)}" y="${middle}">${Math.round(value).toLocaleString("en-US")}</text>`,
      );
      y += LINE_HEIGHT;
    }
  }
  const height = y + 12;
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}" height="${height}" role="img" aria-label="Tasks per second: mailchute beside peers and bare loops">
<style>
text { font: 13px system-ui, sans-serif; fill: #24292f; }
.title { font-weight: 600; font-size: 14px; }
.ours { fill: #0969da; }
.other { fill: #8c959f; }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3; }
  .ours { fill: #58a6ff; }
  .other { fill: #6e7681; }
}
</style>
${parts.join("\n")}
</svg>
`;
}

const escapeXml = (text) =>
  text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
