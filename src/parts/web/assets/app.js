/**
 * Shows the page of the address in the browser, and follows it. What has not changed since the last answer stays as it is, with the
 * focus and the place to which a person has scrolled.
 */
import { DISCONNECTED, GO, hasKey, keepKey, request } from "./ask.js";
import { fillBlocks } from "./blocks.js";
import { byId, fill, link, updateLink } from "./dom.js";
import { follow, letGo } from "./follow.js";

let following = new AbortController();
/** To where the next page is scrolled when it has been drawn; undefined: it stays where it is. */
let top = history.state?.top;
let shownAt = "";

function draw(page) {
  const { name, path, host } = page.tree;
  document.title = `${page.title} · ${name} · mailchute`;
  if (byId("tree").textContent !== name) byId("tree").textContent = name;
  byId("place").textContent = `${path} on ${host}`;
  if (byId("title").textContent !== page.title) byId("title").textContent = page.title;
  byId("command").textContent = page.command;
  say(page.health.text, page.health.state !== "live");
  if (shownAt !== location.href) byId("blocks").replaceChildren();
  shownAt = location.href;
  fillBlocks(byId("blocks"), page.blocks);
  if (top !== undefined) window.scrollTo(0, top);
  top = undefined;
  const nav = page.nav.map((one) => ({ ...one, is_here: isHere(one.to) }));
  fill(document.querySelector("header nav"), nav, link, updateLink);
}

/** A page below another one belongs to it. */
function isHere(path) {
  return path === "/" ? location.pathname === "/" : `${location.pathname}/`.startsWith(`${path}/`);
}

/** The line at the top. */
function say(text, isBad) {
  const state = byId("state");
  if (state.textContent !== text) state.textContent = text;
  state.className = text === "" ? "" : `pill pill-${isBad ? "bad" : "good"}`;
}

/** Shows the page of the address, and follows it while it is seen. */
function show() {
  following.abort();
  following = new AbortController();
  if (document.hidden) return letGo();
  void follow(location.pathname + location.search, {
    draw,
    say: (text) => say(text, true),
    signal: following.signal,
  });
}

function keepPlace() {
  history.replaceState({ top: window.scrollY }, "");
}

function go(to) {
  keepPlace();
  history.pushState(null, "", to);
  top = 0;
  show();
}

document.addEventListener("visibilitychange", show);
document.addEventListener(GO, ({ detail }) => go(detail));
window.addEventListener("popstate", ({ state }) => {
  top = state?.top ?? 0;
  show();
});
window.addEventListener("pagehide", () => {
  keepPlace();
  letGo();
});
document.addEventListener("click", (event) => {
  const target = event.target.closest?.("a[href]");
  const isPlain = event.button === 0 && !event.metaKey && !event.ctrlKey && !event.shiftKey;
  if (!target || !isPlain) return;
  // A link in a drawing has no `origin` of its own.
  const url = new URL(target.getAttribute("href"), location.href);
  if (url.origin !== location.origin) return;
  event.preventDefault();
  go(url.pathname + url.search);
});

/** Changes the code of a link for a session. The code leaves the address at once. */
async function begin() {
  const [, code] = /^#code=([\w-]+)$/.exec(location.hash) ?? [];
  if (code === undefined) return show();
  history.replaceState(null, "", location.pathname + location.search);
  try {
    const { answer, value } = await request("/api/session", { code });
    if (answer.ok) keepKey(value.key);
    else if (!hasKey()) return say(value.error, true);
  } catch {
    return say(DISCONNECTED, true);
  }
  return show();
}

// Another window has opened a new link.
window.addEventListener("storage", show);
window.addEventListener("hashchange", () => void begin());
void begin();
