/** Buttons that change something, what is asked before, and what came of it. Nothing is shown as done that the server has not said. */
import { DISCONNECTED, request } from "./ask.js";
import { byId, element } from "./dom.js";

const SAID_MAX = 5;
/** What went well goes away after this time (ms), or with a click. */
const SAID_MS = 20_000;
/** A click that comes so soon after the question is meant for something else (ms). */
const TOO_SOON_MS = 300;
/** From so many tasks on, their number is to be typed. */
const MANY = 50;

/** What the buttons of a box do. */
const shown = new WeakMap();

/** The buttons of a cell or a block. */
export function buttons(acts) {
  const box = element("span", undefined, { class: "acts" });
  shown.set(box, acts);
  box.append(...acts.map((act) => (act.field === undefined ? button(act) : field(act))));
  return box;
}

/** The same buttons, for what has changed: such as how many tasks a list has. One with the focus keeps it. False: they are others. */
export function updateButtons(box, acts) {
  const before = shown.get(box);
  const isSame = (act, at) => act.text === before[at].text && act.field === before[at].field;
  if (before?.length !== acts.length || !acts.every(isSame)) return false;
  for (const [at, act] of acts.entries()) Object.assign(before[at], act);
  return true;
}

function button(act) {
  const node = element("button", act.text, { type: "button", "data-verb": act.verb });
  node.addEventListener("click", () => void perform(act, act.words, node));
  return node;
}

/** A button with a text beside it. */
function field(act) {
  const form = element("form", undefined, { class: "act" });
  const label = element("label", `${act.field} `);
  const input = element("input", undefined, { required: "", maxlength: "4000" });
  const node = element("button", act.text);
  label.append(input);
  form.append(label, " ", node);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    void perform(act, input.value, node).then((isDone) => {
      if (isDone) input.value = "";
    });
  });
  return form;
}

/** Asks first if it is to be asked, and tells what came of it. @returns whether it is done */
export async function perform(act, words, node) {
  if (node.getAttribute("aria-disabled") === "true") return false;
  if (act.ask !== undefined && !(await isSure(act))) return false;
  node.setAttribute("aria-disabled", "true");
  const line = newLine(`${act.what}: sent …`);
  try {
    return act.all === undefined ? await one(act, words, line) : await each(act, line);
  } catch {
    line.say(`${act.what}: ${DISCONNECTED}`, true);
    return false;
  } finally {
    node.removeAttribute("aria-disabled");
  }
}

async function one({ what, verb, ids, number }, text, line) {
  const { answer, value } = await request("/api/act", { verb, ids, number, text });
  line.say(`${what}: ${answer.ok ? value.said : reason(value)}`, !answer.ok);
  return answer.ok;
}

/** Some tasks of a list at a time, until none is left or a person stops it. */
async function each({ what, verb, all }, line) {
  let [done, after, isStopped] = [0, undefined, false];
  const refused = [];
  line.stop(() => {
    isStopped = true;
  });
  const tell = (end) => {
    const more = refused.length === 0 ? "" : `, ${refused.length} refused: ${refused[0]}`;
    line.say(`${what}: ${done} done${more}${end}`, refused.length > 0);
  };
  do {
    const { answer, value } = await request("/api/act", { verb, all: { ...all, after } });
    if (!answer.ok) {
      line.say(`${what}: ${done} done, then: ${reason(value)}`, true);
      return false;
    }
    done += value.done;
    refused.push(...value.refused.map((one) => `${one.id}: ${reason(one)}`));
    after = value.next;
    tell(" …");
  } while (after !== undefined && !isStopped);
  tell(isStopped ? ", stopped" : "");
  return true;
}

function reason({ error }) {
  if (typeof error === "string") return error;
  const { code, message, hint } = error;
  return `${code}: ${message}${hint === undefined ? "" : `; do: ${hint}`}`;
}

/** A line below the head of the page. The last few stay. Its button is never taken out and put back, so it keeps the focus. */
function newLine(text) {
  const node = element("p");
  const words = element("span", text);
  const button = element("button", "stop", { type: "button" });
  node.append(words);
  node.addEventListener("click", ({ target }) => target !== button && node.remove());
  byId("said").prepend(node);
  while (byId("said").children.length > SAID_MAX) byId("said").lastElementChild.remove();
  return {
    say(now, isBad) {
      words.textContent = now;
      node.className = isBad ? "bad" : "";
      if (now.endsWith(" …")) return;
      button.remove();
      if (!isBad) setTimeout(() => node.remove(), SAID_MS);
    },
    stop(then) {
      button.addEventListener("click", then);
      node.append(" ", button);
    },
  };
}

/** Asks before something is lost. "No" has the focus; the key that asked does not answer. */
function isSure({ ask, what, count }) {
  const dialog = element("dialog", undefined, { "aria-labelledby": "sure" });
  const yes = element("button", `Yes, ${what}`, { type: "button", disabled: "" });
  const no = element("button", "No", { type: "button", autofocus: "" });
  const typed = element("input", undefined, { inputmode: "numeric", "aria-label": "how many" });
  const row = element("p");
  row.append(no, " ", yes);
  dialog.append(element("p", ask, { id: "sure" }));
  if (count > MANY) {
    const label = element("label", `Type ${count} to go on: `);
    label.append(typed);
    dialog.append(label);
  }
  dialog.append(row);
  document.body.append(dialog);
  return new Promise((resolve) => {
    let isYes = false;
    // The browser tells of a closed dialog some time later: until then there would be two, one of them invisible.
    const end = () => {
      dialog.close();
      dialog.remove();
      resolve(isYes);
    };
    dialog.addEventListener("close", end);
    no.addEventListener("click", end);
    yes.addEventListener("click", () => {
      if (count > MANY && typed.value.trim() !== String(count)) return typed.focus();
      isYes = true;
      end();
    });
    dialog.showModal();
    setTimeout(() => {
      yes.disabled = false;
    }, TOO_SOON_MS);
  });
}
