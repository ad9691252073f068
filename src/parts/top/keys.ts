/** Turns the bytes of a terminal in raw mode into names of keys. Drops whole sequences that are no key of ours. */
import { StringDecoder } from "node:string_decoder";

/** After an escape the rest of its sequence must come within this time (ms). Otherwise it is the key `esc`. */
const ESCAPE_MS = 40;
const PASTE_END = "\x1b[201~";
/** A longer paste is cut (characters). */
const PASTE_MAX = 64 * 1024;

/** Pasted text comes as one key with the name "paste". */
export interface Key {
  /** A character, or a name such as "up", "enter", "ctrl-c". */
  name: string;
  /** The pasted text; only for the name "paste". */
  text?: string;
}

const CSI_KEYS: Readonly<Record<string, string>> = {
  A: "up",
  B: "down",
  C: "right",
  D: "left",
  H: "home",
  F: "end",
  Z: "backtab",
  "1~": "home",
  "3~": "delete",
  "4~": "end",
  "5~": "pgup",
  "6~": "pgdn",
  "7~": "home",
  "8~": "end",
};
const CONTROL_KEYS: Readonly<Record<string, string>> = {
  "\r": "enter",
  "\n": "enter",
  "\t": "tab",
  "\x7f": "backspace",
  "\b": "backspace",
};
const CSI = /^\x1b\[([\x30-\x3f]*)[\x20-\x2f]*([\x40-\x7e])/;
const CSI_BEGIN = /^\x1b\[[\x30-\x3f]*[\x20-\x2f]*$/;
/** A longer sequence is noise (characters). */
const SEQUENCE_MAX = 64;

export class KeyReader {
  private readonly decoder = new StringDecoder("utf8");
  private rest = "";
  private timer: NodeJS.Timeout | undefined;

  constructor(private readonly onKey: (key: Key) => void) {}

  feed(bytes: Buffer): void {
    clearTimeout(this.timer);
    this.rest += this.decoder.write(bytes);
    this.take(false);
    if (this.rest !== "") this.timer = setTimeout(() => this.take(true), ESCAPE_MS);
  }

  close(): void {
    clearTimeout(this.timer);
    this.rest = "";
  }

  /** @param isLate true when nothing more came in time, so an escape is a key */
  private take(isLate: boolean): void {
    while (this.rest !== "") {
      const found = nextKey(this.rest, isLate);
      if (found === undefined) return;
      this.rest = this.rest.slice(found.length);
      if (found.key !== undefined) this.onKey(found.key);
    }
  }
}

/** Undefined while the text may be the beginning of something longer. */
function nextKey(text: string, isLate: boolean): { key?: Key; length: number } | undefined {
  if (text.startsWith("\x1b")) return nextSequence(text, isLate);
  const c = String.fromCodePoint(text.codePointAt(0) ?? 0);
  const name = CONTROL_KEYS[c];
  if (name !== undefined) return { key: { name }, length: 1 };
  if (c < " ")
    return { key: { name: `ctrl-${String.fromCharCode(c.charCodeAt(0) + 0x60)}` }, length: 1 };
  return { key: { name: c }, length: c.length };
}

function nextSequence(text: string, isLate: boolean): { key?: Key; length: number } | undefined {
  const [whole, parameters = "", final = ""] = CSI.exec(text) ?? [];
  if (whole !== undefined) {
    if (parameters === "200" && final === "~") return nextPaste(text, whole.length, isLate);
    const name = CSI_KEYS[final === "~" ? `${parameters}~` : final];
    return name === undefined ? { length: whole.length } : { key: { name }, length: whole.length };
  }
  const isBegun = text === "\x1b" || text === "\x1bO" || CSI_BEGIN.test(text);
  if (isBegun && !isLate && text.length < SEQUENCE_MAX) return undefined;
  if (text === "\x1b" || text.startsWith("\x1b\x1b")) return { key: { name: "esc" }, length: 1 };
  if (isBegun) return { length: text.length };
  const second = text.charAt(1);
  if (second === "O") {
    const name = CSI_KEYS[text.charAt(2)];
    return name === undefined ? { length: 3 } : { key: { name }, length: 3 };
  }
  // Alt with a key, or a damaged sequence.
  return { length: second === "[" ? 2 : 1 + String.fromCodePoint(text.codePointAt(1) ?? 0).length };
}

function nextPaste(
  text: string,
  from: number,
  isLate: boolean,
): { key?: Key; length: number } | undefined {
  const end = text.indexOf(PASTE_END, from);
  if (end === -1 && !isLate && text.length < PASTE_MAX) return undefined;
  const to = end === -1 ? text.length : end;
  const length = end === -1 ? text.length : end + PASTE_END.length;
  return { key: { name: "paste", text: text.slice(from, to) }, length };
}
