/**
 * Draws boxes with lines between them. A person drags the drawing, and makes it larger or smaller with the buttons, the keys + and -
 * or the wheel with Ctrl. When only states change, the drawing stays where it is.
 */
import { element, link, svg } from "./dom.js";

const STEP = 1.3;
const SCALES = { min: 0.02, max: 3 };
const MARGIN = 10;
/** From this scale on, texts are read with ease. */
const READABLE = 0.8;

function boxOf(node, [width, height]) {
  const box = svg("a", {
    class: classOf(node),
    transform: `translate(${node.at[0]} ${node.at[1]})`,
  });
  // A link leads to pages of this server only.
  const { href } = link(node);
  if (href !== "") box.setAttribute("href", node.to);
  box.append(svg("title", {}, node.tip));
  box.append(svg("rect", { width, height, rx: 5 }));
  box.append(svg("text", { x: 8, y: height / 2 + 4.5 }, node.text));
  return box;
}

function classOf({ look, is_here: isHere }) {
  return `box box-${look}${isHere ? " here" : ""}`;
}

export function graph(block) {
  const { title, size, box, nodes, edges } = block;
  const frame = element("section", undefined, { class: "graph", "aria-label": title });
  const drawing = svg("svg", { tabindex: "0", role: "group", "aria-label": title });
  const all = svg("g", {});
  all.append(...edges.map((d) => svg("path", { d, class: "edge" })));
  all.append(...nodes.map((node) => boxOf(node, box)));
  drawing.append(all);
  const view = { x: MARGIN, y: MARGIN, scale: 1 };
  const show = () => {
    all.setAttribute("transform", `translate(${view.x} ${view.y}) scale(${view.scale})`);
    drawing.classList.toggle("far", view.scale < 0.4);
  };
  /** The place under the middle, or under the pointer, stays where it is. */
  const zoom = (factor, at) => {
    const { width, height } = drawing.getBoundingClientRect();
    const [x, y] = at ?? [width / 2, height / 2];
    const scale = Math.min(SCALES.max, Math.max(SCALES.min, view.scale * factor));
    view.x = x - ((x - view.x) * scale) / view.scale;
    view.y = y - ((y - view.y) * scale) / view.scale;
    view.scale = scale;
    show();
  };
  const showAll = () => {
    const { width, height } = drawing.getBoundingClientRect();
    const whole = Math.min((width - 2 * MARGIN) / size[0], (height - 2 * MARGIN) / size[1]);
    view.scale = Math.min(1, Math.max(SCALES.min, whole));
    view.x = Math.max(MARGIN, (width - size[0] * view.scale) / 2);
    view.y = Math.max(MARGIN, (height - size[1] * view.scale) / 2);
    show();
  };
  const moves = { showAll, zoom, by: (x, y) => moveBy(view, x, y, show) };
  frame.append(element("h2", title), controls(moves), drawing);
  listen(drawing, moves);
  requestAnimationFrame(() => {
    showAll();
    const here = nodes.find((node) => node.is_here);
    // All of it can be read: the one that is open is seen, too.
    if (here === undefined || view.scale >= READABLE) return;
    const { width, height } = drawing.getBoundingClientRect();
    view.scale = READABLE;
    view.x = width / 2 - (here.at[0] + box[0] / 2) * view.scale;
    view.y = height / 2 - (here.at[1] + box[1] / 2) * view.scale;
    show();
  });
  return frame;
}

function moveBy(view, x, y, show) {
  view.x += x;
  view.y += y;
  show();
}

function controls({ showAll, zoom }) {
  const row = element("p", undefined, { class: "acts" });
  const button = (text, then) => {
    const node = element("button", text, { type: "button" });
    node.addEventListener("click", then);
    row.append(node);
  };
  button("Whole plan", showAll);
  button("Larger", () => zoom(STEP));
  button("Smaller", () => zoom(1 / STEP));
  return row;
}

const ARROWS = { ArrowLeft: [60, 0], ArrowRight: [-60, 0], ArrowUp: [0, 60], ArrowDown: [0, -60] };

function listen(drawing, { zoom, by }) {
  let from;
  let hasMoved = false;
  drawing.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    from = [event.clientX, event.clientY];
    hasMoved = false;
  });
  drawing.addEventListener("pointermove", (event) => {
    if (from === undefined) return;
    const [x, y] = [event.clientX - from[0], event.clientY - from[1]];
    if (!hasMoved && Math.abs(x) + Math.abs(y) < 4) return;
    // Not before it moves: a click on a box must stay one.
    if (!hasMoved) drawing.setPointerCapture(event.pointerId);
    hasMoved = true;
    from = [event.clientX, event.clientY];
    by(x, y);
  });
  for (const end of ["pointerup", "pointercancel"])
    drawing.addEventListener(end, () => {
      from = undefined;
    });
  drawing.addEventListener(
    "click",
    (event) => {
      // It was moved: that opens nothing.
      if (hasMoved) event.preventDefault();
      if (hasMoved) event.stopPropagation();
      hasMoved = false;
    },
    true,
  );
  drawing.addEventListener("dragstart", (event) => event.preventDefault());
  drawing.addEventListener(
    "wheel",
    (event) => {
      if (!event.ctrlKey) return;
      event.preventDefault();
      const { left, top } = drawing.getBoundingClientRect();
      zoom(event.deltaY < 0 ? STEP : 1 / STEP, [event.clientX - left, event.clientY - top]);
    },
    { passive: false },
  );
  // A box that the keyboard has come to is brought into sight.
  drawing.addEventListener("focusin", ({ target }) => {
    const [box, seen] = [target.getBoundingClientRect(), drawing.getBoundingClientRect()];
    const into = (low, high, min, max) => Math.max(0, min - low) - Math.max(0, high - max);
    if (target !== drawing)
      by(
        into(box.left, box.right, seen.left + MARGIN, seen.right - MARGIN),
        into(box.top, box.bottom, seen.top + MARGIN, seen.bottom - MARGIN),
      );
  });
  drawing.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const arrow = ARROWS[event.key];
    if (arrow !== undefined) by(...arrow);
    else if (event.key === "+") zoom(STEP);
    else if (event.key === "-") zoom(1 / STEP);
    else return;
    event.preventDefault();
  });
}

/** Only what changes is drawn again. False: the places of the boxes have changed. */
export function updateGraph(frame, before, block) {
  const placesOf = ({ nodes, edges }) =>
    JSON.stringify([nodes.map(({ at, to }) => [at, to]), edges]);
  if (placesOf(before) !== placesOf(block)) return false;
  const boxes = frame.querySelectorAll("svg a");
  block.nodes.forEach((node, at) => {
    const [old, box] = [before.nodes[at], boxes[at]];
    if (old.text !== node.text) box.querySelector("text").textContent = node.text;
    if (old.tip !== node.tip) box.querySelector("title").textContent = node.tip;
    box.setAttribute("class", classOf(node));
  });
  return true;
}
