/** Mentions: which agents a text names. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { findMentions } from "../../../src/parts/mail/scope/mentions.ts";
import { timeLimitMs } from "../../support/time-limit.ts";

const SCOPE = { project: "app", branch: "feature/login" };
const find = (text: string): string[] => findMentions(text, SCOPE);
/** Addresses of agents of the same scope. */
const here = (...names: string[]): string[] => names.map((name) => `app:feature/login:${name}`);

describe("seed task 4: mentions as full addresses", () => {
  it("resolves the example of the seed", () => {
    expect(find("ping @Impl-1 and @backend:main:June")).toEqual([
      ...here("impl-1"),
      "backend:main:june",
    ]);
  });
});

describe("a mention", () => {
  it.each([
    ["@main:June?", ["app:main:june"]],
    ["@Backend:Feature/Login:JUNE", ["Backend:Feature/Login:june"]],
    ["@bob, @Bob and @BOB", here("bob")],
    ["@b then @a then @b", here("b", "a")],
    ["ask @bob.", here("bob")],
    ["ask @bob...", here("bob")],
    ["(@bob)! *@ann* cc:@joe", here("bob", "ann", "joe")],
    ["@v1.2 and @team/ui/", here("v1.2", "team/ui")],
    ["@june: do it", here("june")],
    ["@main.:june", here("main")],
    ["@june:/etc", here("june")],
    ["@a:b:c:d", ["a:b:c"]],
    ["\u00e4 @bob\u2026", here("bob")],
  ])("is found in %j", (text, addresses) => {
    expect(find(text)).toEqual(addresses);
  });

  it.each([
    "bob@example.com",
    "a.b_c+d-@bob",
    "@bob@example.social",
    "@foo.bar@example.social",
    "j\u00f6@bob",
    "@bob\u00e9",
    "@jose\u0301",
    "e\u0301@bob",
    "@@bob",
    "@ bob",
    "@",
    "@...",
    "@:bob",
    "https://example.com/@bob",
  ])("is not in %j", (text) => {
    expect(find(text)).toEqual([]);
  });
});

describe("code", () => {
  it.each([
    ["a fence", "see\n```ts\n@Override\n```\n@bob"],
    ["a fence of tildes, in which backticks end nothing", "~~~\n@x\n```\n@y\n~~~\n@bob"],
    ["a longer fence", "````\n```\n@x\n```\n````\n@bob"],
    ["a fence with ends of lines from Windows", "```\r\n@x\r\n```\r\n@bob"],
    ["a span", "use `@types/node`, ``a ` @x`` and @bob"],
    ["a fence that never ends", "@bob\n```\n@x"],
    ["a line of a fence with a word behind the marks", "```\n@x\n``` no\n@y\n```\n@bob"],
    [
      "a fence in an item of a list",
      "1. so:\n     ```js\n     @x\n     ```\n- ```\n  @y\n  ```\n@bob",
    ],
    ["a fence in a quote, which ends with it", "> ```\n> @x\n> ```\n> ~~~\n> @y\n@bob"],
    ["a fence in a quote in a quote, which ends with it", "> > ```\n> > @x\n> @bob"],
    ["a fence with a quote of its marks", "```\n> ```\n@x\n> ```\n```\n@bob"],
    ["a fence in a quote in a list", "- > ```\n  > @x\n  > ```\n* 1. ~~~\n     @y\n     ~~~\n@bob"],
  ])("names nobody: %s", (_what, text) => {
    expect(find(text)).toEqual(here("bob"));
  });

  it("is not begun by a lone backtick, or by a span that looks like a fence", () => {
    expect(find("a ` and @bob")).toEqual(here("bob"));
    expect(find("```x``` @bob\n@ann")).toEqual(here("bob", "ann"));
  });
});

/** Characters that are letters, digits or accents, of those that the texts below are made of. */
const WORDY = new Set("abXY019\u00e9\u65e5\u0301");
const isNameChar = (c: string): boolean => "abXY019._/-".includes(c) || c === "_";

/** Reads mentions slowly, a character at a time, by the rules as docs/messages.md has them. */
function readSlowly(text: string): string[] {
  const found: string[] = [];
  const chars = Array.from(withoutCode(text));
  for (const [at, c] of chars.entries()) {
    const before = chars[at - 1] ?? " ";
    if (c !== "@" || WORDY.has(before) || "._+@/-".includes(before)) continue;
    let end = at + 1;
    while (end < chars.length && (isNameChar(chars[end] ?? "") || chars[end] === ":")) end++;
    const after = chars[end] ?? " ";
    if (WORDY.has(after) || after === "@") continue;
    const names: string[] = [];
    for (const part of chars
      .slice(at + 1, end)
      .join("")
      .split(":")) {
      let name = part;
      while (name.endsWith(".") || name.endsWith("/") || name.endsWith("-"))
        name = name.slice(0, -1);
      const isName = name !== "" && !".-/".includes(name.charAt(0)) && name.length <= 96;
      if (isName && names.length < 3) names.push(name);
      if (!isName || name !== part) break;
    }
    const name = names.pop();
    if (name === undefined) continue;
    const branch = names.pop() ?? SCOPE.branch;
    const address = `${names.pop() ?? SCOPE.project}:${branch}:${name.toLowerCase()}`;
    if (!found.includes(address)) found.push(address);
  }
  return found;
}

function withoutCode(text: string): string {
  let fence = "";
  let fenceDepth = 0;
  const kept: string[] = [];
  for (const line of text.split("\n").map((one) => (one.endsWith("\r") ? one.slice(0, -1) : one))) {
    let rest = line;
    let depth = 0;
    let quotes = 0;
    let isItem = false;
    for (;;) {
      const isMark = rest.startsWith("- ") || rest.startsWith("+ ");
      if (!isMark && (rest === "" || !"\t >".includes(rest.charAt(0)))) break;
      isItem ||= isMark;
      if (rest.startsWith(">")) depth++;
      if (!isItem) quotes = depth;
      rest = rest.slice(1);
    }
    if (quotes < fenceDepth) fence = "";
    const mark = rest.charAt(0);
    let count = 0;
    while ((mark === "`" || mark === "~") && rest.charAt(count) === mark) count++;
    const info = rest.slice(count);
    if (fence !== "") {
      const isLong = mark === fence.charAt(0) && count >= fence.length;
      if (isLong && !isItem && depth === fenceDepth && info.trim() === "") fence = "";
    } else if (count >= 3 && !(mark === "`" && info.includes("`"))) {
      fence = mark.repeat(count);
      fenceDepth = depth;
    } else kept.push(withoutSpans(line));
  }
  return kept.join("\n");
}

function withoutSpans(line: string): string {
  const pieces: string[] = [];
  for (const c of line) {
    const last = pieces.at(-1);
    if (last !== undefined && (c === "`") === last.startsWith("`")) pieces[pieces.length - 1] += c;
    else pieces.push(c);
  }
  let kept = "";
  for (let at = 0; at < pieces.length; at++) {
    const piece = pieces[at] ?? "";
    const end = piece.startsWith("`") ? pieces.indexOf(piece, at + 1) : -1;
    kept += end === -1 ? piece : " ";
    if (end !== -1) at = end;
  }
  return kept;
}

describe("any text", () => {
  it("names those whom a slow reader of the rules finds", () => {
    const marks = ["@", "@", "`", "``", "```", "~~~", "\n", "\r\n", ":", ".", " ", "/", "-", "+"];
    const words = [
      "a",
      "bX",
      "Y0",
      "_",
      "\u00e9",
      "\u65e5",
      "\u0301",
      "> ",
      "- ",
      "@a",
      "\n```",
      "@b:a.",
    ];
    const text = fc
      .array(fc.constantFrom(...marks, ...words), { maxLength: 30 })
      .map((parts) => parts.join(""));
    let mentions = 0;
    fc.assert(
      fc.property(text, (one) => {
        const expected = readSlowly(one);
        mentions += expected.length;
        expect(find(one)).toEqual(expected);
      }),
      { numRuns: 20_000 },
    );
    // It is not about empty lists only.
    expect(mentions).toBeGreaterThan(1000);
  });

  const word = fc.stringMatching(/^[a-z0-9_]([a-z0-9._/-]{0,8}[a-z0-9_])?$/);
  const part = fc.oneof(
    fc.constantFrom("@", "`", "```", "\n", ":", ".", " ", "~~~\n", "\u00e9"),
    word,
  );

  it("gives addresses that mention themselves again, each once", () => {
    fc.assert(
      fc.property(fc.array(part, { maxLength: 40 }), (parts) => {
        const found = find(parts.join(""));
        expect(new Set(found).size).toBe(found.length);
        expect(find(found.map((address) => `@${address}`).join(" "))).toEqual(found);
      }),
    );
  });

  it("gives each agent that it names between spaces, in order and with its own letters in lower case", () => {
    const mention = fc.record({
      project: fc.stringMatching(/^[A-Za-z0-9_]{1,6}$/),
      branch: fc.stringMatching(/^[A-Za-z0-9_]{1,6}$/),
      name: word.map((name) => name.toUpperCase()),
      end: fc.constantFrom("", ".", ",", "!", ")", ":"),
    });
    fc.assert(
      fc.property(fc.array(mention, { maxLength: 8 }), (mentions) => {
        const text = mentions.map((m) => `@${m.project}:${m.branch}:${m.name}${m.end}`).join(" ");
        const all = mentions.map((m) => `${m.project}:${m.branch}:${m.name.toLowerCase()}`);
        expect(find(text)).toEqual([...new Set(all)]);
      }),
    );
  });

  it("is read in a time that grows with its length", () => {
    const marks = ["@", "`", "``", "./-", "@a", "a@", "`a"];
    for (const mark of marks) {
      const from = performance.now();
      find(`@${mark.repeat(200_000)}x`);
      expect(performance.now() - from, mark).toBeLessThan(timeLimitMs(5000));
    }
    const runs = Array.from({ length: 1000 }, (_, n) => "`".repeat(n + 1)).join(" ");
    expect(find(`${runs} @bob`)).toEqual(here("bob"));
  });
});
