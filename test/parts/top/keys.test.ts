/** Bytes of a terminal become names of keys. */
import fc from "fast-check";
import { describe, expect, it, onTestFinished } from "vitest";
import { type Key, KeyReader } from "../../../src/parts/top/keys.ts";
import { waitFor } from "../../support/wait-for.ts";

function newReader() {
  const keys: Key[] = [];
  const reader = new KeyReader((key) => void keys.push(key));
  onTestFinished(() => reader.close());
  return { reader, keys, names: () => keys.map(({ name }) => name) };
}

function namesOf(text: string): string[] {
  const { reader, names } = newReader();
  reader.feed(Buffer.from(text));
  return names();
}

describe("a key", () => {
  it.each([
    ["\x1b[A", "up"],
    ["\x1bOB", "down"],
    ["\x1b[5~", "pgup"],
    ["\x1b[6~", "pgdn"],
    ["\x1b[1~", "home"],
    ["\x1bOF", "end"],
    ["\x1b[Z", "backtab"],
    ["\t", "tab"],
    ["\r", "enter"],
    ["\x7f", "backspace"],
    ["\x03", "ctrl-c"],
    ["\x1a", "ctrl-z"],
    ["G", "G"],
    ["ä", "ä"],
    ["👍", "👍"],
  ])("%j is %s", (text, name) => {
    expect(namesOf(text)).toEqual([name]);
  });

  it("may come in pieces", () => {
    const { reader, names } = newReader();
    for (const byte of Buffer.from("\x1b[6~é")) reader.feed(Buffer.from([byte]));
    expect(names()).toEqual(["pgdn", "é"]);
  });

  it("escape is a key when nothing follows", async () => {
    const { reader, names } = newReader();
    reader.feed(Buffer.from("\x1b"));
    expect(names()).toEqual([]);
    await waitFor(() => names().length === 1, { what: "the key" });
    expect(names()).toEqual(["esc"]);
  });

  it.each(["\x1b[1;5A\x1b[200;1Hx", "\x1b[<0;3;4Mx", "\x1bcx", "\x1b[?1;2cx", "\x1b[97;5ux"])(
    "a sequence that is none is swallowed whole: %j",
    (text) => {
      expect(namesOf(text).filter((name) => name !== "up" && name !== "home")).toEqual(["x"]);
    },
  );

  it("pasted text is one key, whatever is in it", () => {
    const { reader, keys } = newReader();
    reader.feed(Buffer.from("\x1b[200~cy\x1b[A\n"));
    expect(keys).toEqual([]);
    reader.feed(Buffer.from("q\x1b[201~j"));
    expect(keys).toEqual([{ name: "paste", text: "cy\x1b[A\nq" }, { name: "j" }]);
  });
});

it("any bytes are taken without an error, and nothing is kept for ever", async () => {
  await fc.assert(
    fc.asyncProperty(fc.uint8Array({ maxLength: 200 }), async (bytes) => {
      const { reader, names } = newReader();
      reader.feed(Buffer.from(bytes));
      reader.feed(Buffer.from("\x1b[201~\x1b[201~".padEnd(120, "z")));
      expect(names().at(-1)).toBe("z");
    }),
    { numRuns: 300 },
  );
});
