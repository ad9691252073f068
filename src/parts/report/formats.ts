/** Prints a page as text for a terminal, as Markdown, or as one HTML file without scripts. Pure. */
import { html } from "../../text/html.ts";
import { fold, paint, safe, tableWithTexts, wrap } from "../../text/render.ts";
import type { Page, Section } from "./page.ts";
import { type Drawn, TIMELINE_STYLE, timelineHtml } from "./timeline-html.ts";

export const FORMATS = ["text", "md", "html"] as const;
export type Format = (typeof FORMATS)[number];

const TEXT_MIN = 14;

/** @param width in cells */
export function asText(page: Page, width: number, colour: boolean): string[] {
  const lines = [
    paint(colour, "bold", page.title),
    ...page.lead.flatMap((line) => wrap(safe(line), width, 2)),
  ];
  for (const { title, columns, rows, texts, note } of page.sections) {
    const shown = columns.map(({ title: head, isNumber, isText }) => ({
      title: head,
      ...(isNumber === true ? { align: "right" as const } : {}),
      ...(isText === true ? { min: TEXT_MIN } : {}),
    }));
    const cells = rows.map((row) => row.map(safe));
    lines.push("", paint(colour, "bold", title));
    const beside = texts?.of.map(safe) ?? [];
    const found = tableWithTexts(shown, cells, beside, width - 2, colour);
    lines.push(...found.map((line) => `  ${line}`));
    if (note !== undefined) lines.push(`  ${note}`);
  }
  if (page.next.length > 0) lines.push("", paint(colour, "bold", "Do next"));
  for (const { why, do: todo } of page.next) {
    lines.push(...fold(safe(why), width - 2).map((line) => `  ${line}`));
    // A command is not broken into lines, because a person pastes it.
    lines.push(`    ${paint(colour, "cyan", safe(todo))}`);
  }
  return lines;
}

export function asMarkdown(page: Page): string[] {
  const lines = [
    `# ${markdown(page.title)}`,
    "",
    ...page.lead.map((line) => `- ${markdown(line)}`),
  ];
  for (const section of page.sections) {
    lines.push("", `## ${section.title}`, "", ...markdownTable(section));
    if (section.note !== undefined) lines.push("", markdown(section.note));
  }
  if (page.next.length > 0) lines.push("", "## Do next", "");
  for (const { why, do: todo } of page.next) lines.push(`- ${markdown(why)}: ${code(todo)}`);
  return lines;
}

/** The table with the column of the texts, if there is one. */
function wholeTable({ columns, rows, texts }: Section): Pick<Section, "columns" | "rows"> {
  if (texts === undefined) return { columns, rows };
  return {
    columns: [...columns, { title: texts.title }],
    rows: rows.map((row, at) => [...row, texts.of[at] ?? ""]),
  };
}

function markdownTable(section: Section): string[] {
  const { columns, rows } = wholeTable(section);
  const row = (cells: readonly string[]): string => `| ${cells.join(" | ")} |`;
  return [
    row(columns.map(({ title }) => title)),
    row(columns.map(({ isNumber }) => (isNumber === true ? "--:" : "---"))),
    ...rows.map((cells) => row(cells.map((cell) => markdown(cell)))),
  ];
}

/** Escapes a text so that Markdown shows it as it is, on one line. */
function markdown(text: string): string {
  return safe(text)
    .replace(/&/g, "&amp;")
    .replace(/</g, "&lt;")
    .replace(/>/g, "&gt;")
    .replace(/[\\`*_{}[\]()#!|~]/g, "\\$&")
    .replace(/^([-+])/, "\\$1")
    .replace(/^(\d+)\.(?=\s|$)/, "$1\\.");
}

function code(text: string): string {
  const plain = safe(text);
  const longest = Math.max(0, ...[...plain.matchAll(/`+/g)].map(([run]) => run.length));
  const fence = "`".repeat(longest + 1);
  const pad = longest > 0 ? " " : "";
  return fence + pad + plain + pad + fence;
}

const STYLE = `:root{color-scheme:light dark}
body{font:15px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}
table{border-collapse:collapse;width:100%;display:block;overflow-x:auto}
th,td{text-align:left;padding:.2rem .8rem .2rem 0;border-bottom:1px solid #8884;vertical-align:top}
th{font-size:.8em}td.n,th.n{text-align:right;font-variant-numeric:tabular-nums}
code{font:13px/1.4 ui-monospace,monospace;overflow-wrap:anywhere}
${TIMELINE_STYLE}`;

export function asHtml(page: Page, drawn: Drawn | undefined): string[] {
  return [
    "<!doctype html>",
    `<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">`,
    `<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">`,
    `<title>${html(page.title)}</title><style>${STYLE}</style></head><body><main>`,
    `<h1>${html(page.title)}</h1>`,
    ...page.lead.map((line) => `<p>${html(line)}</p>`),
    ...(drawn === undefined ? [] : timelineHtml(drawn)),
    ...page.sections.flatMap(htmlSection),
    ...(page.next.length === 0 ? [] : ["<h2>Do next</h2>", "<ul>"]),
    ...page.next.map(({ why, do: todo }) => `<li>${html(why)}<br><code>${html(todo)}</code></li>`),
    ...(page.next.length === 0 ? [] : ["</ul>"]),
    "</main></body></html>",
  ];
}

function htmlSection(section: Section): string[] {
  const { title, note } = section;
  const { columns, rows } = wholeTable(section);
  const cell = (tag: string, text: string, at: number): string =>
    `<${tag}${columns[at]?.isNumber === true ? ' class="n"' : ""}>${html(text)}</${tag}>`;
  return [
    `<h2>${html(title)}</h2>`,
    "<table><thead>",
    `<tr>${columns.map(({ title: head }, at) => cell("th", head, at)).join("")}</tr></thead><tbody>`,
    ...rows.map((row) => `<tr>${row.map((text, at) => cell("td", text, at)).join("")}</tr>`),
    "</tbody></table>",
    ...(note === undefined ? [] : [`<p>${html(note)}</p>`]),
  ];
}
