/** What a key does while the screen asks for a text, a yes or no, or a number. The default is no. Pure. */
import type { Key } from "./keys.ts";
import {
  type ConfirmPrompt,
  type InputPrompt,
  type NumberPrompt,
  type Pressed,
  type Prompt,
  pageOf,
  type TopState,
} from "./state.ts";

/** A key that comes sooner after the question was typed before the person read it (ms). */
const TOO_SOON_MS = 300;
const TEXT_CHARS_MAX = 4000;

export function pressInPrompt(state: TopState, prompt: Prompt, key: Key, nowMs: number): Pressed {
  switch (prompt.kind) {
    case "input":
      return pressInInput(state, prompt, key);
    case "confirm":
      return pressInConfirm(state, prompt, key, nowMs);
    case "number":
      return pressInNumber(state, prompt, key);
  }
}

function closed(state: TopState, note = ""): TopState {
  return { ...state, prompt: undefined, note };
}

function pressInConfirm(
  state: TopState,
  { askedMs, deeds }: ConfirmPrompt,
  { name }: Key,
  nowMs: number,
): Pressed {
  if (nowMs - askedMs < TOO_SOON_MS || name === "paste") return { state };
  const deed = Object.hasOwn(deeds, name) ? deeds[name] : undefined;
  return deed === undefined
    ? { state: closed(state, "nothing was done") }
    : { state: closed(state), deed };
}

function pressInNumber(state: TopState, prompt: NumberPrompt, { name }: Key): Pressed {
  const type = (typed: string): Pressed => ({ state: { ...state, prompt: { ...prompt, typed } } });
  if (/^\d$/.test(name)) return type((prompt.typed + name).slice(0, 9));
  if (name === "backspace") return type(prompt.typed.slice(0, -1));
  if (name === "enter" && prompt.typed === String(prompt.count))
    return { state: closed(state), deed: prompt.deed };
  return name === "paste" ? { state } : { state: closed(state, "nothing was done") };
}

function pressInInput(state: TopState, prompt: InputPrompt, key: Key): Pressed {
  const { name } = key;
  const type = (text: string): Pressed => withText(state, prompt, text.slice(0, TEXT_CHARS_MAX));
  switch (name) {
    case "esc":
      return { state: closed(prompt.what === "filter" ? { ...state, filter: "" } : state) };
    case "enter":
      return enter(state, prompt);
    case "backspace":
      return type(Array.from(prompt.text).slice(0, -1).join(""));
    case "ctrl-u":
      return type("");
    case "ctrl-w":
      return type(prompt.text.replace(/\S*\s*$/u, ""));
    case "paste":
      return type(prompt.text + (key.text ?? "").replace(/[\r\n]+/g, " "));
    default:
      return Array.from(name).length === 1 ? type(prompt.text + name) : { state };
  }
}

/** A filter already takes effect while it is typed. */
function withText(state: TopState, prompt: InputPrompt, text: string): Pressed {
  const filter = prompt.what === "filter" ? text : state.filter;
  return { state: { ...state, filter, prompt: { ...prompt, text } } };
}

function enter(state: TopState, { what, text, id }: InputPrompt): Pressed {
  if (what === "filter")
    return { state: closed(state), ...(text === "" ? {} : { deed: { does: "find", id: text } }) };
  if (what === "answer")
    return text.trim() === ""
      ? { state: closed(state, "no answer was given") }
      : { state: closed(state), deed: { does: "answer", id, text } };
  const page = pageOf(state);
  if (page?.kind !== "task") return { state: closed(state) };
  const pages = [...state.pages.slice(0, -1), { ...page, search: text }];
  return {
    state: { ...closed(state), pages },
    ...(text === "" ? {} : { deed: { does: "search", direction: "back", isFirst: true } }),
  };
}
