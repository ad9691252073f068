/** Keys for the page of a work: to the next file or change, land, reject. A person can turn them off. */
import { element, remembered } from "./dom.js";

const OFF = "mailchute-keys-off";
const HELP = [
  ["j k", "files"],
  ["n p", "changes"],
  ["↓ ↑", "lines"],
  ["Enter", "comment"],
  ["l", "land"],
  ["r", "reject"],
];

let current;

/** A line that names the keys. @param isOpen false: nothing can be changed here */
export function helpWithKeys(box, isOpen) {
  current = box;
  const line = element("p", undefined, { class: "keys" });
  line.append(remembered("keys", OFF, true));
  for (const [keys, what] of isOpen ? HELP : HELP.slice(0, 2)) {
    const one = element("span");
    for (const key of keys.split(" ")) one.append(element("kbd", key), " ");
    one.append(what);
    line.append(" ", one);
  }
  return line;
}

const ACTS = {
  j: () => step("details.file > summary", 1),
  k: () => step("details.file > summary", -1),
  n: () => step("tbody", 1),
  p: () => step("tbody", -1),
  l: () => document.querySelector("[data-verb^=land]")?.click(),
  r: () => document.querySelector(".reject textarea")?.focus(),
};

/** To the next thing below or above the one with the focus; to the first one if none has it. */
function step(selector, by) {
  const all = [...current.querySelectorAll(selector)].filter((one) => one.checkVisibility());
  const from = document.activeElement;
  const isIn = current.contains(from);
  const is = (one, where) => (from.compareDocumentPosition(one) & where) !== 0;
  const next = !isIn
    ? all[0]
    : by > 0
      ? all.find((one) => is(one, Node.DOCUMENT_POSITION_FOLLOWING) && !one.contains(from))
      : all.findLast((one) => is(one, Node.DOCUMENT_POSITION_PRECEDING) && !one.contains(from));
  const line = next?.querySelector(":is(.add, .del) button");
  (line ?? next?.querySelector("button") ?? next)?.focus({ preventScroll: true });
  next?.scrollIntoView({ block: selector === "tbody" ? "center" : "start" });
}

document.addEventListener("keydown", (event) => {
  const { key, target, ctrlKey, metaKey, altKey } = event;
  const isTyped = target.matches?.("input, textarea, select") || document.querySelector("dialog");
  if (!current?.isConnected || isTyped || ctrlKey || metaKey || altKey) return;
  if (localStorage.getItem(OFF) !== null || ACTS[key] === undefined) return;
  event.preventDefault();
  ACTS[key]();
});
