/** Draws a chart of the shapes that the server has measured. It fills the width that is there; its texts are no part of the drawing. */
import { cell, element, link } from "./dom.js";

const SVG = "http://www.w3.org/2000/svg";

function shape({ is, look, d, box, tip, to }) {
  const node = document.createElementNS(SVG, is === "line" ? "path" : "rect");
  node.setAttribute("class", `${is} look-${look}`);
  if (is === "line") node.setAttribute("d", d);
  else
    ["x", "y", "width", "height"].forEach((name, at) => {
      node.setAttribute(name, box[at]);
    });
  if (tip === undefined) return node;
  const title = document.createElementNS(SVG, "title");
  title.textContent = tip;
  node.append(title);
  if (to === undefined) return node;
  const { href } = link({ text: tip, to });
  const holder = document.createElementNS(SVG, "a");
  holder.setAttribute("href", href);
  holder.setAttribute("aria-label", tip);
  holder.append(node);
  return holder;
}

export function drawing({ title, size, shapes }) {
  const node = document.createElementNS(SVG, "svg");
  node.setAttribute("viewBox", `0 0 ${size[0]} ${size[1]}`);
  node.setAttribute("preserveAspectRatio", "none");
  // A drawing with links is no picture: a reader must find them.
  node.setAttribute("role", shapes.some(({ to }) => to !== undefined) ? "group" : "img");
  node.setAttribute("aria-label", title);
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

function legendOf({ legend }) {
  const list = element("p", undefined, { class: "legend" });
  for (const { text, look } of legend) {
    const key = element("span", text);
    key.prepend(element("i", "", { class: `look-${look}` }));
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
