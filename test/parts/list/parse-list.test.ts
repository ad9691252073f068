/** Which lines of a Markdown file are boxes, what belongs to them, and that a tick changes one character. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { dedent, parseList, tickBoxes } from "../../../src/parts/list/parse-list.ts";
import { workOf } from "../../../src/parts/list/work-items.ts";
import { timeLimitMs } from "../../support/time-limit.ts";

const itemsOf = (text: string) => workOf(parseList(text)).items;
const titlesOf = (text: string): string[] => itemsOf(text).map((item) => item.title);
const promptsOf = (text: string): string[] => itemsOf(text).map((item) => item.prompt);
const lines = (...all: string[]): string => all.join("\n");

describe("what is a box", () => {
  it.each(["- [ ] a", "* [ ] a", "+ [ ] a", "1. [ ] a", "12) [ ] a", "-\t[ ]\ta", "   - [ ] a"])(
    "%j is an open one",
    (text) => {
      const [item] = itemsOf(text);
      expect(item).toMatchObject({ title: "a", box: { isTicked: false }, line: 1 });
      expect(text[item?.box.at ?? 0]).toBe(" ");
    },
  );

  it.each(["- [x] a", "- [X] a"])("%j is a ticked one", (text) => {
    expect(itemsOf(text)).toMatchObject([{ title: "a", box: { isTicked: true } }]);
  });

  it.each([
    ["no list", "[ ] a"],
    ["nothing in the brackets", "- [] a"],
    ["no text", "- [ ] "],
    ["no space behind", "- [ ]a"],
    ["another letter", "- [y] a"],
    ["no space before", "-[ ] a"],
    ["code by indentation", lines("text", "", "    - [ ] a")],
    ["code after a marker", "-      [ ] a"],
    ["a fence", lines("```", "- [ ] a", "```")],
    ["a fence of tildes with a shorter one in it", lines("~~~~", "~~~", "- [ ] a", "~~~~")],
    ["a fence that is not closed", lines("```md", "- [ ] a")],
    ["a fence in an item", lines("- plain", "  ```", "  - [ ] a", "  ```")],
    ["a comment", lines("<!--", "- [ ] a", "-->")],
    ["preformatted HTML", lines("<pre>", "- [ ] a", "</pre>")],
    ["a quotation", "> - [ ] a"],
    ["a line that goes on with a paragraph", lines("- plain", "        - [ ] a")],
  ])("none: %s", (_what, text) => {
    expect(titlesOf(text)).toEqual([]);
  });

  it("finds those behind a fence, a comment, or an item that a fence was in", () => {
    const text = lines(
      "```",
      "- [ ] no",
      "``` ",
      "- [ ] a",
      "<!-- one line --> ",
      "- [ ] b",
      "- plain",
      "  ```",
      "  - [ ] no",
      "- [ ] c",
    );
    expect(titlesOf(text)).toEqual(["a", "b", "c"]);
  });

  it("reads a line of very many markers quickly, and takes most of them for text", () => {
    const text = `${"- ".repeat(500_000)}[ ] a`;
    const startMs = performance.now();
    expect(parseList(text).items.length).toBeLessThan(10);
    expect(performance.now() - startMs).toBeLessThan(timeLimitMs(2000));
  });

  it("finds the first one after a byte order mark, and all with any line end", () => {
    const text = "\ufeff- [ ] a\r\n- [ ] b\r- [ ] c\n\r\n- [ ] d";
    expect(titlesOf(text)).toEqual(["a", "b", "c", "d"]);
    expect(itemsOf(text).map((item) => text.slice(item.box.at - 1, item.box.at + 2))).toEqual(
      Array(4).fill("[ ]"),
    );
    expect(itemsOf(text).map((item) => item.line)).toEqual([1, 2, 3, 5]);
  });
});

describe("YAML at the beginning of the file", () => {
  const yaml = lines("title: x", "steps:", "- [ ] none", "  - [x] none");

  it.each([
    ["", "---"],
    ["\ufeff", "---"],
    ["", "..."],
  ])("has no boxes (after %j, up to %j)", (mark, end) => {
    for (const eol of ["\n", "\r\n", "\r"]) {
      const text =
        mark + lines("---", yaml, end, "- [ ] one", "---", "- [ ] two").replaceAll("\n", eol);
      expect(titlesOf(text)).toEqual(["one", "two"]);
      const ticked = tickBoxes(
        text,
        itemsOf(text).map((item) => item.box),
      );
      expect(ticked).toBe(text.replace("[ ] one", "[x] one").replace("[ ] two", "[x] two"));
      expect(itemsOf(text)[0]?.line).toBe(7);
    }
  });

  it("is a rule if it does not end, or does not begin in the first line", () => {
    expect(titlesOf(lines("---", "- [ ] one"))).toEqual(["one"]);
    expect(titlesOf(lines("", "---", "- [ ] one", "---"))).toEqual(["one"]);
    expect(titlesOf(lines("----", "- [ ] one", "----"))).toEqual(["one"]);
  });
});

describe("what belongs to a box", () => {
  it("its indented lines, without their indentation", () => {
    const text = lines(
      "- [ ] a",
      "  more",
      "",
      "      code",
      "  - plain",
      "",
      "not indented",
      "- [ ] b",
    );
    expect(promptsOf(text)).toEqual([lines("a", "more", "", "    code", "- plain"), "b"]);
  });

  it("also a line that is wrapped without indentation, as Markdown has it", () => {
    expect(promptsOf(lines("- [ ] a long", "text", "# Next", "- [ ] b"))).toEqual([
      lines("a long", "text"),
      "b",
    ]);
  });

  it("a code block with something like a box in it", () => {
    expect(promptsOf(lines("1. [ ] a", "   ```", "   - [ ] x", "   ```", "2. [ ] b"))).toEqual([
      lines("a", "```", "- [ ] x", "```"),
      "b",
    ]);
  });

  it("with tabs, as with spaces", () => {
    expect(promptsOf("- [ ] a\n\tmore\n\t\tdeep")).toEqual([lines("a", "  more", "  \tdeep")]);
    expect(dedent("\tx", 2)).toBe("  x");
    expect(dedent("    x", 2)).toBe("  x");
    expect(dedent(" x", 2)).toBe("x");
  });
});

describe("boxes below a box", () => {
  const text = lines(
    "- [ ] Release",
    "  of version 2",
    "  - [ ] bump",
    "    the version",
    "  - [x] tag",
    "- [ ] alone",
  );

  it("are the tasks, and know what they are a part of", () => {
    expect(promptsOf(text)).toEqual([
      lines("bump", "the version", "", "It is a part of:", "- Release", "  of version 2"),
      lines("tag", "", "It is a part of:", "- Release", "  of version 2"),
      "alone",
    ]);
    expect(itemsOf(text).map((item) => item.text)).toEqual([
      "Release\nbump",
      "Release\ntag",
      "alone",
    ]);
  });

  it("make the one above a heading, which knows them", () => {
    const deep = lines("- [ ] A", "  - plain", "    - [ ] B", "      - [ ] c", "  - [ ] d");
    const { headings, items } = workOf(parseList(deep));
    expect(items.map((item) => item.text)).toEqual(["A\nplain\nB\nc", "A\nd"]);
    expect(headings.map(({ boxes }) => boxes.length)).toEqual([1, 3]);
  });

  it("may begin on one line with it", () => {
    expect(itemsOf("- - [ ] a")).toMatchObject([{ title: "a", text: "a" }]);
  });
});

/** Pieces of Markdown that may change what the next line means. */
const PIECE = fc.oneof(
  fc.constantFrom("- [ ] ", "- [x] ", "* [ ] ", "+ [X] ", "1. [ ] ", "2) [ ] ", "- ", "> ", "# "),
  fc.constantFrom("```", "~~~~", "````md", "<!--", "-->", "<pre>", "</pre>", "---", "* * *"),
  fc.constantFrom(" ", "  ", "    ", "\t", "\ufeff", "[ ]", "[x]", "`", "\u00a0", "\u2028"),
  fc.string({ unit: "grapheme", maxLength: 6 }),
);
const LINE = fc.array(PIECE, { maxLength: 6 }).map((pieces) => pieces.join(""));
const MARKDOWN = fc
  .tuple(
    fc.constantFrom("", "\ufeff"),
    fc.array(fc.tuple(LINE, fc.constantFrom("\n", "\n", "\r\n", "\r")), { maxLength: 20 }),
  )
  .map(([mark, all]) => mark + all.map(([line, end]) => line + end).join(""));

/** What is said of an item, apart from whether it is ticked. */
const meaningsOf = (text: string) =>
  itemsOf(text).map(({ line, title, prompt, text: key }) => ({ line, title, prompt, key }));

describe("a tick", () => {
  it("changes one character of each chosen box, in any text, and the meaning of no item", () => {
    fc.assert(
      fc.property(MARKDOWN, fc.infiniteStream(fc.boolean()), (text, choice) => {
        const { items } = parseList(text);
        const boxes = items.flatMap(({ box }) => (box === undefined ? [] : [box]));
        for (const { at, isTicked } of boxes)
          expect(text.slice(at - 1, at + 2)).toMatch(isTicked ? /^\[[xX]\]$/ : /^\[ \]$/);
        const chosen = boxes.filter((box) => !box.isTicked && choice.next().value);
        const ticked = tickBoxes(text, chosen);
        const places = new Set(chosen.map((box) => box.at));
        expect(ticked).toHaveLength(text.length);
        for (let at = 0; at < text.length; at++)
          expect(ticked[at]).toBe(places.has(at) ? "x" : text[at]);
        expect(meaningsOf(ticked)).toEqual(meaningsOf(text));
        expect(
          parseList(ticked).items.flatMap(({ box }) => (box?.isTicked === true ? [box.at] : [])),
        ).toEqual(boxes.filter((box) => box.isTicked || places.has(box.at)).map((box) => box.at));
      }),
      { numRuns: 2000 },
    );
  });

  it("is refused where no open box is", () => {
    expect(() => tickBoxes("- [x] a", [{ at: 3, isTicked: false }])).toThrow(/no open box at 3/);
  });
});
