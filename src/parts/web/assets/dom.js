/** Makes elements. All that comes from the server is put into them as text, never as markup. */
import { buttons } from "./acts.js";

/** What each element was made from. */
export const made = new WeakMap();

export const byId = (id) => document.getElementById(id);

export function element(name, text, attributes = {}) {
  return filled(document.createElement(name), attributes, text);
}

/** A part of a drawing. */
export function svg(name, attributes, text) {
  return filled(document.createElementNS("http://www.w3.org/2000/svg", name), attributes, text);
}

function filled(node, attributes, text) {
  if (text !== undefined) node.textContent = text;
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  return node;
}

function two(number) {
  return String(number).padStart(2, "0");
}

function timeText(date) {
  const time = `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
  const isToday = date.toDateString() === new Date().toDateString();
  return isToday
    ? time
    : `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())} ${time}`;
}

/** Only as exact as a step of an axis over so much time (ms). */
export function tickText(atMs, spanMs) {
  const date = new Date(atMs);
  const day = `${two(date.getMonth() + 1)}-${two(date.getDate())}`;
  const time = `${two(date.getHours())}:${two(date.getMinutes())}`;
  if (spanMs > 2 * 86_400_000) return `${day} ${time}`;
  return spanMs < 8 * 60_000 ? `${time}:${two(date.getSeconds())}` : time;
}

/** A link leads to pages of this server only. */
export function link(item) {
  const node = element("a");
  if (/^\/(?!\/)/.test(item.to)) node.href = item.to;
  nameLink(node, item);
  return node;
}

function nameLink(node, { text, small, is_here: isHere }) {
  node.textContent = text === "" ? "(no name)" : text;
  if (small !== undefined) node.append(" ", element("small", small));
  if (isHere) node.setAttribute("aria-current", "page");
  else node.removeAttribute("aria-current");
}

/** False: it leads elsewhere. */
export function updateLink(node, item) {
  if (node.getAttribute("href") !== item.to) return false;
  nameLink(node, item);
  return true;
}

/** An id with a button that copies it. */
function copyable({ id, to }) {
  const box = element("span", undefined, { class: "id" });
  const button = element("button", "copy", { type: "button", "aria-label": `copy ${id}` });
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(id);
    button.textContent = "copied";
  });
  box.append(to === undefined ? element("code", id) : link({ text: id, to }), " ", button);
  return box;
}

/** A switch that all pages of this browser share. @param isUsual what it is before a person has changed it */
export function remembered(text, key, isUsual, onChange) {
  const label = element("label");
  const box = element("input", undefined, { type: "checkbox" });
  box.checked = (localStorage.getItem(key) === null) === isUsual;
  box.addEventListener("change", () => {
    if (box.checked === isUsual) localStorage.removeItem(key);
    else localStorage.setItem(key, "1");
    onChange?.(box.checked);
  });
  label.append(box, ` ${text}`);
  onChange?.(box.checked);
  return label;
}

function progress({ pct, text }) {
  const box = element("span", undefined, { class: "progress" });
  box.append(element("progress", undefined, { max: 100, value: pct, "aria-label": text }), text);
  return box;
}

export function cell(value) {
  if (typeof value === "string") return document.createTextNode(value);
  if ("id" in value) return copyable(value);
  if ("to" in value) return link(value);
  if ("pct" in value) return progress(value);
  if ("look" in value) return element("span", value.word, { class: `pill pill-${value.look}` });
  if ("acts" in value) return buttons(value.acts);
  const date = new Date(value.at_ms);
  return element("time", timeText(date), { datetime: date.toISOString(), title: date.toString() });
}

/**
 * Makes the children of a node those of a list. One whose item is the same as before is left alone and not moved, so it keeps its focus
 * and what was typed into it.
 */
export function fill(parent, items, make, update) {
  const texts = items.map((item) => JSON.stringify(item));
  const isSame = (node, text) => node !== undefined && made.get(node) === text;
  items.forEach((item, at) => {
    const text = texts[at];
    let old = parent.children[at];
    if (isSame(old, text)) return;
    const later = [...parent.children].slice(at).find((node) => isSame(node, text));
    if (later !== undefined) {
      while (parent.children[at] !== later) parent.children[at].remove();
      return;
    }
    // The one that stands here comes later in the list.
    if (old !== undefined && texts.includes(made.get(old), at)) old = undefined;
    const changed =
      update && become(old, item, { update, isKept: (node) => texts.includes(made.get(node), at) });
    if (changed) {
      while (parent.children[at] !== changed) parent.children[at].remove();
      made.set(changed, text);
      return;
    }
    const node = make(item);
    made.set(node, text);
    if (old === undefined) parent.insertBefore(node, parent.children[at] ?? null);
    else old.replaceWith(node);
  });
  while (parent.children.length > items.length) parent.lastElementChild.remove();
}

/** The first one from here on that can become the item. Those before it are no longer in the list. */
function become(from, item, { update, isKept }) {
  for (let node = from; node && !isKept(node); node = node.nextElementSibling)
    if (update(node, item)) return node;
  return undefined;
}

export function holding(name) {
  return (value) => {
    const node = element(name);
    node.append(cell(value));
    return node;
  };
}
