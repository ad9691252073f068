/**
 * Finds the agents that a text mentions: `@agent`, `@branch:agent` and `@project:branch:agent`. Code is skipped, because it has words
 * such as `@types` and `@Override`. Pure.
 */
import { explainBadName, formatAddress, parseAddress, type Scope } from "./scope.ts";

const PARTS_MAX = 3;
/**
 * An `@` after a letter or digit, as in `bob@example.com`, begins no mention. The accent of a letter may be a separate character, so
 * `\p{M}` counts as part of the letter.
 */
const MENTION =
  /(?<![\p{L}\p{M}\p{N}._+@/-])@((?:[A-Za-z0-9._/-]+~[0-9a-f]{8,32}:)?[A-Za-z0-9._/:-]+)(?![\p{L}\p{M}\p{N}@._/:-])/gu;
/** A fence may be in a quote, or at the start of a list item. */
const FENCE = /^((?:[\t >]|(?:[*+-]|\d{1,9}[.)])[\t ])*)(`{3,}|~{3,})(.*)$/;
const QUOTES = /^[\t >]*/;

/** The addresses of the mentioned agents, each once, in order. @param scope supplies the parts that a mention leaves out */
export function findMentions(text: string, scope: Scope): string[] {
  const found = new Set<string>();
  for (const [, run = ""] of withoutCode(text).matchAll(MENTION)) {
    const address = parseAddress(trimmed(run), scope);
    if (address !== undefined) found.add(formatAddress(address));
  }
  return [...found];
}

/** The mention without the punctuation that follows it: the longest part that is an address. */
function trimmed(run: string): string {
  const parts: string[] = [];
  for (const part of run.split(":").slice(0, PARTS_MAX)) {
    const name = withoutEnd(part);
    // Digits after `~` tell projects of one name apart: see `store/claims.ts`.
    const own = parts.length === 0 ? name.replace(/~[0-9a-f]+$/, "") : name;
    if (explainBadName(own.toLowerCase()) !== undefined) break;
    parts.push(name);
    // A mention ends at a full stop at the end of a part.
    if (name !== part) break;
  }
  return parts.join(":");
}

/** The text without the full stops, slashes and hyphens at its end. */
function withoutEnd(text: string): string {
  let end = text.length;
  while (end > 0 && "./-".includes(text.charAt(end - 1))) end--;
  return text.slice(0, end);
}

/** The text without code: blocks between fences, and spans between backticks in one line. */
function withoutCode(text: string): string {
  const kept: string[] = [];
  let fence: { mark: string; depth: number } | undefined;
  for (const line of text.split(/\r?\n/)) {
    const [, before = "", mark = "", info = ""] = FENCE.exec(line) ?? [];
    const [quotes = ""] = QUOTES.exec(line) ?? [];
    // The end of a quote also ends a fenced block in it.
    if (fence !== undefined && depthOf(quotes) < fence.depth) fence = undefined;
    if (fence !== undefined) {
      // Inside a block, a fence in a list item or in deeper quotes is a line of the code.
      const isEnd = before === quotes && depthOf(quotes) === fence.depth && info.trim() === "";
      if (isEnd && mark.startsWith(fence.mark)) fence = undefined;
    } else if (mark !== "" && !(mark.startsWith("`") && info.includes("`")))
      fence = { mark, depth: depthOf(before) };
    else kept.push(withoutSpans(line));
  }
  return kept.join("\n");
}

/** How many levels of quotes these characters begin. */
function depthOf(start: string): number {
  return start.split(">").length - 1;
}

/** A span ends at the next run of as many backticks. A run that has no such partner is text. */
function withoutSpans(line: string): string {
  const runs = [...line.matchAll(/`+/g)].map(({ index, 0: { length } }) => ({ index, length }));
  const partners = new Map<number, number>();
  const nextOf = new Map<number, number>();
  for (let n = runs.length - 1; n >= 0; n--) {
    const { length } = runs[n] ?? { length: 0 };
    const next = nextOf.get(length);
    if (next !== undefined) partners.set(n, next);
    nextOf.set(length, n);
  }
  let kept = "";
  let from = 0;
  for (let n = 0; n < runs.length; n++) {
    const partner = partners.get(n);
    const [begin, end] = [runs[n], runs[partner ?? -1]];
    if (begin === undefined || end === undefined || partner === undefined) continue;
    kept += `${line.slice(from, begin.index)} `;
    from = end.index + end.length;
    n = partner;
  }
  return kept + line.slice(from);
}
