/**
 * Draws the pages in the browser. All that comes from the server is put into elements as text. What has not changed since the last
 * answer stays as it is, with the focus and the place to which a person has scrolled.
 */

const AGAIN_MS = 1000;
const KEY = "mailchute-key";
const DISCONNECTED = "disconnected: mailchute web does not answer; what is shown may be old";
/** What each element was made from. */
const made = new WeakMap();
let timer;
let againMs = AGAIN_MS;
/** Counts the pages that were asked for: an answer that comes after the next question is thrown away. */
let asked = 0;
let shownAt = "";

const byId = (id) => document.getElementById(id);

function element(name, text, attributes = {}) {
  const node = document.createElement(name);
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

/** A link leads to pages of this server only. */
function link({ text, to, is_here: isHere }) {
  const node = element("a", text === "" ? "(no name)" : text);
  if (/^\/(?!\/)/.test(to)) node.href = to;
  if (isHere) node.setAttribute("aria-current", "page");
  return node;
}

function cell(value) {
  if (typeof value === "string") return document.createTextNode(value);
  if ("to" in value) return link(value);
  const date = new Date(value.at_ms);
  return element("time", timeText(date), { datetime: date.toISOString(), title: date.toString() });
}

/** Makes the children of a node those of a list; one whose item is the same as before is left alone. */
function fill(parent, items, make, update) {
  items.forEach((item, at) => {
    const json = JSON.stringify(item);
    const old = parent.children[at];
    if (old !== undefined && made.get(old) === json) return;
    if (old !== undefined && update?.(old, item)) {
      made.set(old, json);
      return;
    }
    const node = make(item);
    made.set(node, json);
    if (old === undefined) parent.append(node);
    else old.replaceWith(node);
  });
  while (parent.children.length > items.length) parent.lastElementChild.remove();
}

function holding(name) {
  return (value) => {
    const node = element(name);
    node.append(cell(value));
    return node;
  };
}

function fillRow(row, cells) {
  fill(row, cells, holding("td"));
  return true;
}

function fillRows(body, { columns, rows, none }) {
  if (rows.length > 0) return fill(body, rows, (cells) => withRow(cells), fillRow);
  fill(body, [none], (text) => {
    const row = element("tr");
    row.append(element("td", text, { colspan: columns.length }));
    return row;
  });
}

function withRow(cells) {
  const row = element("tr");
  fillRow(row, cells);
  return row;
}

const MAKERS = {
  text: ({ text, is_bad: isBad }) => element("p", text, isBad ? { class: "bad" } : {}),
  links({ label, links }) {
    const node = element("nav", undefined, { class: "links", "aria-label": label });
    node.append(...links.map(link));
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
  log({ title, lines, older, end }) {
    const box = element("section", undefined, { "aria-label": title });
    const links = element("p");
    for (const one of [older, end]) if (one !== null) links.append(link(one), " ");
    const text = element("pre", lines.join("\n"), { tabindex: "0", "aria-label": title });
    box.append(element("h2", title), links, text);
    // It opens at its end, where the news are.
    requestAnimationFrame(() => {
      text.scrollTop = text.scrollHeight;
    });
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
      go(url.pathname + url.search);
    });
    return form;
  },
};

function fact([name, value]) {
  const pair = element("div");
  const text = element("dd");
  text.append(cell(value));
  pair.append(element("dt", name), text);
  return pair;
}

/** Changes a block in its place. False: it is to be made anew. */
function updateBlock(node, block) {
  const before = JSON.parse(made.get(node));
  if (before.kind !== block.kind) return false;
  if (block.kind === "facts") fill(node, block.facts, fact);
  else if (block.kind === "table" && before.columns.join() === block.columns.join()) {
    node.querySelector("caption").textContent = block.title;
    fillRows(node.querySelector("tbody"), block);
  } else if (block.kind === "log") updateLog(node, block);
  else return false;
  return true;
}

/** A log that grows follows its end only while a person looks at its end. */
function updateLog(node, { title, lines, older, end }) {
  const text = node.querySelector("pre");
  const isAtEnd = text.scrollHeight - text.scrollTop - text.clientHeight < 4;
  if (!isAtEnd) return;
  node.querySelector("h2").textContent = title;
  text.textContent = lines.join("\n");
  text.scrollTop = text.scrollHeight;
  const links = node.querySelector("p");
  links.replaceChildren();
  for (const one of [older, end]) if (one !== null) links.append(link(one), " ");
}

function draw(page) {
  document.title = `${page.title} · mailchute`;
  if (byId("title").textContent !== page.title) byId("title").textContent = page.title;
  byId("command").textContent = page.command;
  say(
    page.health === null ? "" : page.health.text,
    page.health !== null && page.health.state !== "live",
  );
  if (shownAt !== location.href) byId("blocks").replaceChildren();
  shownAt = location.href;
  fill(byId("blocks"), page.blocks, (block) => MAKERS[block.kind](block), updateBlock);
  for (const one of document.querySelectorAll("header nav a")) {
    const isHere = one.getAttribute("href") === location.pathname;
    if (isHere) one.setAttribute("aria-current", "page");
    else one.removeAttribute("aria-current");
  }
}

/** The line at the top. */
function say(text, isBad) {
  const state = byId("state");
  if (state.textContent !== text) state.textContent = text;
  state.className = isBad ? "bad" : "";
}

async function load() {
  clearTimeout(timer);
  const mine = ++asked;
  try {
    const path = encodeURIComponent(location.pathname + location.search);
    const answer = await fetch(`/api/page?path=${path}`, {
      headers: { "X-Mailchute-Key": localStorage.getItem(KEY) ?? "" },
    });
    const value = await answer.json();
    if (mine !== asked) return;
    againMs = value.again_ms ?? AGAIN_MS;
    if (answer.ok) draw(value);
    else say(value.error, true);
    if (answer.status === 401) return;
  } catch {
    if (mine !== asked) return;
    say(DISCONNECTED, true);
  }
  timer = setTimeout(next, againMs);
}

/** A page that is not seen asks for nothing. */
function next() {
  if (document.hidden) return;
  void load();
}

function go(to) {
  history.pushState(null, "", to);
  window.scrollTo(0, 0);
  void load();
}

document.addEventListener("visibilitychange", next);
window.addEventListener("popstate", () => void load());
document.addEventListener("click", (event) => {
  const target = event.target.closest?.("a[href]");
  const isPlain = event.button === 0 && !event.metaKey && !event.ctrlKey && !event.shiftKey;
  if (!target || !isPlain || target.origin !== location.origin) return;
  event.preventDefault();
  go(target.pathname + target.search);
});

/** Changes the code of a link for a session. The code leaves the address at once. */
async function begin() {
  const [, code] = /^#code=([\w-]+)$/.exec(location.hash) ?? [];
  if (code === undefined) return load();
  history.replaceState(null, "", location.pathname + location.search);
  try {
    const answer = await fetch("/api/session", {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ code }),
    });
    const value = await answer.json();
    if (answer.ok) localStorage.setItem(KEY, value.key);
    else if (localStorage.getItem(KEY) === null) return say(value.error, true);
  } catch {
    return say(DISCONNECTED, true);
  }
  return load();
}

window.addEventListener("hashchange", () => void begin());
void begin();
