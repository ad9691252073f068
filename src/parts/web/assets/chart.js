/** Draws a chart of the shapes that the server has measured. It fills the width that is there; its texts are no part of the drawing. */
import { cell, element, link, svg } from "./dom.js";

function shape({ is, look, d, box, tip, to }) {
  const [x, y, width, height] = box ?? [];
  const name = { class: `${is} look-${look}` };
  const node =
    is === "line" ? svg("path", { ...name, d }) : svg("rect", { ...name, x, y, width, height });
  if (tip === undefined) return node;
  node.append(svg("title", {}, tip));
  if (to === undefined) return node;
  const holder = svg("a", { href: link({ text: tip, to }).href, "aria-label": tip });
  holder.append(node);
  return holder;
}

export function drawing({ title, size, shapes }) {
  const node = svg("svg", {
    viewBox: `0 0 ${size[0]} ${size[1]}`,
    preserveAspectRatio: "none",
    // A drawing with links is no picture: a reader must find them.
    role: shapes.some(({ to }) => to !== undefined) ? "group" : "img",
    "aria-label": title,
  });
  node.style.height = `${size[1]}px`;
  node.append(...shapes.map(shape));
  return node;
}

function below({ from, to }) {
  const ends = element("p", undefined, { class: "ends" });
  for (const end of [from, to]) {
    const node = element("span");
    node.append(cell(end));
    ends.append(node);
  }
  return ends;
}

/** Each text with its shape. */
export function legendOf({ legend }) {
  const list = element("p", undefined, { class: "legend" });
  for (const { text, look, box: [top, height] = [4, 12] } of legend) {
    const key = element("span", text);
    const shape = { is: "band", look, box: [0, top, 12, height] };
    const sign = drawing({ title: "", size: [12, 20], shapes: [shape] });
    sign.setAttribute("aria-hidden", "true");
    sign.setAttribute("class", "sign");
    key.prepend(sign);
    list.append(key);
  }
  return list;
}

const partsOf = (block) => [drawing(block), below(block), legendOf(block)];

export function chart(block) {
  const box = element("figure", undefined, { class: "chart" });
  box.append(element("figcaption", block.title), element("p", block.top, { class: "top" }));
  box.append(...partsOf(block));
  return box;
}

/** The table of a chart stays as it is. */
export function updateChart(box, block) {
  box.querySelector(".top").textContent = block.top;
  const old = [box.querySelector("svg"), box.querySelector(".ends"), box.querySelector(".legend")];
  partsOf(block).forEach((node, at) => {
    old[at].replaceWith(node);
  });
}
