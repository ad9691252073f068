/**
 * Shows the page of the address in the browser, and follows it. What has not changed since the last answer stays as it is, with the
 * focus and the place to which a person has scrolled.
 */
import { CHANGED, DISCONNECTED, GO, hasKey, keepKey, request } from "./ask.js";
import { MAKERS, updateBlock } from "./blocks.js";
import { byId, fill } from "./dom.js";

const AGAIN_MS = 1000;
let timer;
let againMs = AGAIN_MS;
/** Counts the pages that were asked for: an answer that comes after the next question is thrown away. */
let asked = 0;
let shownAt = "";

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
    const { answer, value } = await request(`/api/page?path=${path}`);
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
document.addEventListener(GO, ({ detail }) => go(detail));
document.addEventListener(CHANGED, () => void load());
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
    const { answer, value } = await request("/api/session", { code });
    if (answer.ok) keepKey(value.key);
    else if (!hasKey()) return say(value.error, true);
  } catch {
    return say(DISCONNECTED, true);
  }
  return load();
}

window.addEventListener("hashchange", () => void begin());
void begin();
