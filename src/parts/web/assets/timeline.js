/** Draws the rows of a timeline. A drag over them zooms in. */
import { goTo } from "./ask.js";
import { drawing, legendOf } from "./chart.js";
import { element, tickText } from "./dom.js";

const WIDTH = 1000;
/** A shorter drag (pixels) is a click. */
const DRAG_MIN = 6;

function placed(name, text, [x, y, width, height]) {
  const node = element("span", text, { class: name, "aria-hidden": "true" });
  Object.assign(node.style, {
    left: `${x / 10}%`,
    top: `${y}px`,
    width: `${width / 10}%`,
    height: `${height}px`,
  });
  return node;
}

function rowOf({ name, height, shapes, limits }, ticks) {
  const row = element("div", undefined, { class: "lane" });
  const lane = element("div", undefined, { class: "bars" });
  const levels = limits.map(({ y }) => ({ is: "line", look: "warn", d: `M0 ${y}H${WIDTH}` }));
  const grid = ticks.map(([x]) => ({ is: "line", look: "grid", d: `M${x} 0V${height}` }));
  const size = [WIDTH, height];
  // A lane has its name in its first row only.
  const title = name === "" ? "more at the same time" : name;
  lane.append(drawing({ title, size, shapes: [...grid, ...levels, ...shapes] }));
  for (const { y, text } of limits) lane.append(placed("limit", text, [0, y, WIDTH, 12]));
  for (const { text, box } of shapes)
    if (text !== undefined) lane.append(placed("words", text, box));
  const label = element("span", name, { class: "name", title: name });
  row.append(label, lane);
  return row;
}

function axisOf({ ticks, from_ms: fromMs, to_ms: toMs }) {
  const axis = element("div", undefined, { class: "lane axis" });
  const place = element("div", undefined, { class: "bars" });
  for (const [x, atMs] of ticks) {
    const node = element("time", tickText(atMs, toMs - fromMs));
    node.style.left = `${x / 10}%`;
    place.append(node);
  }
  axis.append(element("span", "", { class: "name" }), place);
  return axis;
}

/** Shows the chosen time, and goes there at the end of the drag. */
function zoomable(box) {
  let begin;
  const choice = element("div", undefined, { class: "choice" });
  choice.hidden = true;
  const placeOf = (event) => {
    const { left, width } = box.querySelector(".bars").getBoundingClientRect();
    return { left, width, at: Math.min(1, Math.max(0, (event.clientX - left) / width)) };
  };
  const show = (from, to, { left, width }) => {
    choice.style.left = `${left - box.getBoundingClientRect().left + Math.min(from, to) * width}px`;
    choice.style.width = `${Math.abs(to - from) * width}px`;
    choice.hidden = false;
  };
  box.addEventListener("pointerdown", (event) => {
    if (event.button === 0 && event.target.closest(".bars") !== null) begin = event;
  });
  box.addEventListener("pointermove", (event) => {
    if (begin === undefined || Math.abs(event.clientX - begin.clientX) < DRAG_MIN) return;
    box.setPointerCapture(event.pointerId);
    show(placeOf(begin).at, placeOf(event).at, placeOf(event));
  });
  box.addEventListener("pointercancel", () => {
    begin = undefined;
    choice.hidden = true;
  });
  box.addEventListener("pointerup", (event) => {
    const from = begin;
    begin = undefined;
    if (choice.hidden || from === undefined) return;
    choice.hidden = true;
    const { from: fromMs, to: toMs } = box.dataset;
    const ends = [placeOf(from).at, placeOf(event).at].sort((a, b) => a - b);
    const [a, b] = ends.map((at) => Math.round(Number(fromMs) + at * (toMs - fromMs)));
    if (b - a >= 1000) goTo(`/timeline?from=${a}&to=${b}`);
  });
  // A click on a bar opens its task; the end of a drag does not.
  box.addEventListener("dragstart", (event) => event.preventDefault());
  box.append(choice);
}

function fillTimeline(box, block) {
  box.dataset.from = block.from_ms;
  box.dataset.to = block.to_ms;
  const rows = block.rows.map((row) => rowOf(row, block.ticks));
  box.querySelector(".lanes").replaceChildren(...rows, axisOf(block));
}

export function timeline(block) {
  const box = element("section", undefined, { class: "timeline", "aria-label": block.title });
  box.append(element("div", undefined, { class: "lanes" }), legendOf(block));
  fillTimeline(box, block);
  zoomable(box);
  return box;
}

export function updateTimeline(box, block) {
  fillTimeline(box, block);
  return true;
}
