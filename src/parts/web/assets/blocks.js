/** Draws the blocks of a page: one maker for each kind, and what changes an old one in its place. */
import { buttons, updateButtons } from "./acts.js";
import { goTo } from "./ask.js";
import { chart, updateChart } from "./chart.js";
import { diff, reject } from "./diff.js";
import { cell, element, fill, holding, link, made, remembered, updateLink } from "./dom.js";
import { graph, updateGraph } from "./graph.js";
import { timeline, updateTimeline } from "./timeline.js";

/** A line is a text, a list of texts with the colours that they have, or a line that opens and closes others. */
function lineOf(line) {
  if (line.head !== undefined) {
    const box = element("details");
    const head = element("summary");
    head.append(lineOf(line.head));
    box.append(head, element("div"));
    box.open = line.is_open;
    fill(box.lastElementChild, line.lines, lineOf);
    return box;
  }
  const node = element("span", undefined, { class: "line" });
  const parts = typeof line === "string" ? [[line, ""]] : line;
  for (const [text, names] of parts) node.append(colouredText(text, names));
  // A line without a text has its height, too, also in what a person copies.
  if (node.textContent === "") node.append(element("br"));
  return node;
}

function colouredText(text, names) {
  if (names === "") return text;
  const node = element("span", text, { class: names.replace(/(\w+)/g, "ansi-$1") });
  const [colour] = names.split(" ");
  node.style.color = `var(--${colour === "dim" ? "soft" : colour})`;
  return node;
}

const WRAP = "mailchute-wrap";

/** A switch for long lines. */
function wrapSwitch(text) {
  const label = remembered("wrap", WRAP, false, (isOn) => text.classList.toggle("wrapped", isOn));
  label.className = "wrap";
  return label;
}

/** An id, a word or a time stays on one line. */
const SHORT_CHARS = 16;

function fillRow(row, cells) {
  fill(row, cells, holding("td"));
  for (const { classList, textContent } of row.children)
    classList.toggle("short", textContent.length <= SHORT_CHARS && !textContent.includes("\n"));
  return true;
}

function fillRows(body, { columns, rows, none }) {
  if (rows.length > 0) {
    fill(body, rows, (cells) => withRow(cells), fillRow);
    // On a narrow screen there is no head, and each cell says what it is.
    for (const row of body.children)
      [...row.children].slice(1).forEach((node, at) => {
        node.dataset.name = columns[at + 1];
      });
    return;
  }
  fill(body, [none], (text) => {
    const row = element("tr");
    row.append(element("td", text, { colspan: columns.length, class: "none" }));
    return row;
  });
}

function withRow(cells) {
  const row = element("tr");
  fillRow(row, cells);
  return row;
}

export const MAKERS = {
  heading: ({ text }) => element("h2", text),
  text: ({ text, is_bad: isBad }) => element("p", text, isBad ? { class: "bad" } : {}),
  links({ label, links }) {
    const node = element("nav", undefined, { class: "links", "aria-label": label });
    fill(node, links, link, updateLink);
    return node;
  },
  facts({ facts }) {
    const list = element("dl");
    fill(list, facts, fact);
    return list;
  },
  table(block) {
    const box = element("div", undefined, { class: "table" });
    const table = element("table");
    const head = element("tr");
    head.append(...block.columns.map((name) => element("th", name, { scope: "col" })));
    const top = element("thead");
    top.append(head);
    const body = element("tbody");
    table.append(element("caption", block.title), top, body);
    box.append(table);
    fillRows(body, block);
    return box;
  },
  chart(block) {
    const box = chart(block);
    const details = element("details");
    details.append(element("summary", "as a table"));
    details.append(MAKERS.table({ ...block.table, title: block.title, none: "nothing" }));
    box.append(details);
    return box;
  },
  graph,
  timeline,
  grid({ name, blocks }) {
    const box = element("div", undefined, { class: name });
    fillBlocks(box, blocks);
    return box;
  },
  log({ title, lines, older, end }) {
    const box = element("section", undefined, { class: "log", "aria-label": title });
    const links = element("p");
    const text = element("pre", undefined, { tabindex: "0", role: "log", "aria-label": title });
    text.setAttribute("aria-live", "off");
    fillLog(links, text, { lines, older, end });
    box.append(element("h2", title), wrapSwitch(text), links, text);
    text.addEventListener("scroll", () => {
      const block = later.get(box);
      if (block !== undefined && isAtEnd(text)) updateLog(box, block);
    });
    // It opens at its end, where the news are.
    requestAnimationFrame(() => {
      text.scrollTop = text.scrollHeight;
    });
    return box;
  },
  acts({ label, acts }) {
    const box = element("div", undefined, { role: "group", "aria-label": label });
    box.append(buttons(acts));
    return box;
  },
  diff,
  reject,
  split({ main, side }) {
    const box = element("div", undefined, { class: "split" });
    box.append(element("div"), element("div", undefined, { class: "side" }));
    fillSplit(box, { main, side });
    return box;
  },
  fold({ title, pill, is_open: isOpen, blocks }) {
    const box = element("details", undefined, { class: "fold" });
    const head = element("summary", title);
    if (pill !== null) head.append(" ", cell(pill));
    box.open = isOpen;
    box.append(head, element("div"));
    fillBlocks(box.lastElementChild, blocks);
    return box;
  },
  find({ label, to, name, value }) {
    const form = element("form");
    const input = element("input", undefined, { name, type: "search", maxlength: "200" });
    input.value = value;
    const holder = element("label", `${label} `);
    holder.append(input);
    form.append(holder, " ", element("button", "find"));
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      const url = new URL(to, location.origin);
      if (input.value !== "") url.searchParams.set(name, input.value);
      goTo(url.pathname + url.search);
    });
    return form;
  },
};

export function fillBlocks(parent, blocks) {
  fill(parent, blocks, (block) => MAKERS[block.kind](block), updateBlock);
}

function fillSplit(box, { main, side }) {
  fillBlocks(box.firstElementChild, main);
  fillBlocks(box.lastElementChild, side);
}

function fact([name, value]) {
  const pair = element("div");
  const text = element("dd");
  text.append(cell(value));
  pair.append(element("dt", name), text);
  return pair;
}

/** Changes a block in its place. False: it is to be made anew. */
export function updateBlock(node, block) {
  const before = JSON.parse(made.get(node));
  if (before.kind !== block.kind) return false;
  if (block.kind === "facts") fill(node, block.facts, fact);
  else if (block.kind === "table" && before.columns.join() === block.columns.join()) {
    node.querySelector("caption").textContent = block.title;
    fillRows(node.querySelector("tbody"), block);
  } else if (block.kind === "acts" && before.label === block.label)
    return updateButtons(node.firstElementChild, block.acts);
  else if (block.kind === "links" && before.label === block.label)
    fill(node, block.links, link, updateLink);
  else if (block.kind === "graph") return updateGraph(node, before, block);
  else if (block.kind === "timeline") return updateTimeline(node, block);
  else if (block.kind === "grid" && before.name === block.name) fillBlocks(node, block.blocks);
  else if (block.kind === "chart" && before.title === block.title) {
    updateChart(node, block);
    fillRows(node.querySelector("tbody"), { ...block.table, none: "nothing" });
  } else if (block.kind === "log") updateLog(node, block);
  else if (block.kind === "split") fillSplit(node, block);
  else if (block.kind === "fold" && isSameHead(before, block))
    fillBlocks(node.lastElementChild, block.blocks);
  else return false;
  return true;
}

function isSameHead(one, other) {
  return one.title === other.title && JSON.stringify(one.pill) === JSON.stringify(other.pill);
}

/** What a log shows when a person looks at its end again. */
const later = new WeakMap();

function isAtEnd(text) {
  return text.scrollHeight - text.scrollTop - text.clientHeight < 4;
}

/** A log that grows follows its end only while a person looks at its end; else it says that there is more. */
function updateLog(node, block) {
  const text = node.querySelector("pre");
  if (!isAtEnd(text)) {
    later.set(node, block);
    node.querySelector("h2").textContent = `${block.title}, which has grown: scroll to it`;
    return;
  }
  later.delete(node);
  node.querySelector("h2").textContent = block.title;
  fillLog(node.querySelector("p"), text, block);
  text.scrollTop = text.scrollHeight;
}

function fillLog(links, text, { lines, older, end }) {
  fill(text, lines, lineOf);
  links.replaceChildren();
  for (const one of [older, end]) if (one !== null) links.append(link(one), " ");
}
