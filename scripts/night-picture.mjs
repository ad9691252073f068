#!/usr/bin/env node
/**
 * night-picture.mjs FILE: draws what `npm run demo:night` has printed into FILE as docs/images/night.svg, line after line on a terminal.
 * The picture of README.md; `MAILCHUTE_WRITE_DOCS=1 npx vitest run --project searches test/parts/demo-night.test.ts` makes it of a new run.
 */
import fs from "node:fs";
import { fileURLToPath, pathToFileURL } from "node:url";
import { readFlags } from "./flags.mjs";

export const PICTURE = fileURLToPath(new URL("../docs/images/night.svg", import.meta.url));

const ROWS = 22;
const [WIDTH, LINE, LEFT, TOP] = [680, 18, 18, 46];
const HEIGHT = TOP + ROWS * LINE;
/** Seconds for which the end stays. */
const END_S = 6;
/** So many lines stand there at once: a screen that begins empty says nothing at the first look. */
const BEGINNING = 6;
/** The report goes on, and the check of the demo is no part of the night. */
const REPORT_LINES = 6;

/** The lines of the night, without its times, which are those of the machine that played it. */
function linesOf(text) {
  const lines = text.trimEnd().split("\n");
  const end = lines.findIndex((line) => line.startsWith("The end:"));
  const report = lines.findIndex((line) => line.includes("$ mailchute report"));
  if (end === -1 || report === -1) throw new Error("this is not the whole output of the demo");
  const counts = lines.find((line) => line.startsWith("All counts are as expected"));
  if (counts === undefined) throw new Error("the counts of the demo are not as expected");
  return [
    ...lines.slice(0, report + 1 + REPORT_LINES),
    "   …",
    counts.replace(/, [\d.]+ s\.$/, "."),
  ]
    .filter((line) => !line.includes("state tree:"))
    .map((line) => line.replace(/^ *[\d.]+ s {2}/, "   ").trimEnd())
    .filter((line) => line.trim() !== "");
}

const escaped = (text) =>
  text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");

const isTitle = (line) => /^(?:A night|\d\.|All counts) /.test(line);

function spansOf(line) {
  if (isTitle(line)) return `<tspan class="b">${escaped(line)}</tspan>`;
  const text = line.trimStart();
  if (text.startsWith("$")) return `<tspan class="c">${escaped(text)}</tspan>`;
  const [, who = "", what = text] =
    /^((?:ada|bob|cleo|landing|question|the night) +)(.*)$/.exec(text) ?? [];
  const kind = /dead|limit|fail|back|conflict|waits|[?]$|\[ \]/.test(what)
    ? "w"
    : /landed|pass|\[x\]|answered/.test(what)
      ? "g"
      : "n";
  return `<tspan class="m">${escaped(who)}</tspan><tspan class="${kind}">${escaped(what)}</tspan>`;
}

const STYLE = `
    text{font:13px ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace;white-space:pre}
    .f{fill:#f6f8fa;stroke:#d0d7de}.n{fill:#1f2328}.b{fill:#1f2328;font-weight:bold}.m{fill:#57606a}.c{fill:#0550ae}.g{fill:#116329}.w{fill:#9a3b00}
    @media (prefers-color-scheme:dark){.f{fill:#0d1117;stroke:#30363d}.n,.b{fill:#e6edf3}.m{fill:#9198a1}.c{fill:#79c0ff}.g{fill:#56d364}.w{fill:#ffa657}}
  `;

/** @param text what the demo has printed. @returns the picture; a viewer that does not move it shows the end */
export function drawNight(text) {
  const lines = linesOf(text);
  let atS = 0;
  const shown = lines.map((line, index) => {
    if (index >= BEGINNING) atS += isTitle(line) ? 1.4 : 0.6;
    return atS;
  });
  const totalS = atS + END_S;
  const share = (seconds) => (seconds / totalS).toFixed(4);
  const dur = `dur="${totalS.toFixed(1)}s" repeatCount="indefinite" calcMode="discrete"`;
  const rows = lines.map((line, index) => {
    const indent = isTitle(line) ? 0 : 14;
    const times = `keyTimes="0;${share(shown[index])}"`;
    if (shown[index] === 0)
      return `<text x="${LEFT + indent}" y="${TOP + index * LINE}">${spansOf(line)}</text>`;
    const show = `<animate attributeName="opacity" values="0;1" ${times} ${dur}/>`;
    return `<text x="${LEFT + indent}" y="${TOP + index * LINE}">${spansOf(line)}${show}</text>`;
  });
  const scrolls = shown.slice(ROWS - 1).map((seconds, step) => [share(seconds), -step * LINE]);
  const moves = `values="0 0;${scrolls.map(([, y]) => `0 ${y}`).join(";")}" keyTimes="0;${scrolls.map(([time]) => time).join(";")}"`;
  const last = scrolls.at(-1)?.[1] ?? 0;
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${WIDTH}" height="${HEIGHT}" viewBox="0 0 ${WIDTH} ${HEIGHT}" role="img">
  <title>A night of three agents on one checklist: a limit, a crash, a conflict, a question, and what has landed in the morning</title>
  <style>${STYLE}</style>
  <clipPath id="screen"><rect y="${TOP - 13}" width="${WIDTH}" height="${HEIGHT - TOP + 9}"/></clipPath>
  <rect class="f" x="0.5" y="0.5" width="${WIDTH - 1}" height="${HEIGHT - 1}" rx="8"/>
  <circle cx="18" cy="15" r="5" fill="#ff5f57"/><circle cx="36" cy="15" r="5" fill="#febc2e"/><circle cx="54" cy="15" r="5" fill="#28c840"/>
  <text x="${WIDTH / 2}" y="19" text-anchor="middle"><tspan class="m">npm run demo:night</tspan></text>
  <g clip-path="url(#screen)"><g transform="translate(0 ${last})">
    <animateTransform attributeName="transform" type="translate" ${moves} ${dur}/>
${rows.join("\n")}
  </g></g>
</svg>
`;
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) {
  const { positionals } = readFlags(import.meta.url, { allowPositionals: true });
  fs.writeFileSync(PICTURE, drawNight(fs.readFileSync(positionals[0] ?? 0, "utf8")));
}
