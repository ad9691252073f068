/** Says which words of a changed line are new or gone. Pure. */

/** Parts of a line: where each begins and ends. */
export type Spans = [from: number, to: number][];

/** Above this many words on one side the middle counts as changed as a whole: the comparison takes the product of both. */
const WORDS_MAX = 200;

/** Empty lists when the lines have too little in common: then marks would say nothing. */
export function changedWords(old: string, now: string): [old: Spans, now: Spans] {
  const [a, b] = [wordsOf(old), wordsOf(now)];
  let head = 0;
  while (head < Math.min(a.length, b.length) && a[head] === b[head]) head++;
  let tail = 0;
  while (tail < Math.min(a.length, b.length) - head && a.at(-1 - tail) === b.at(-1 - tail)) tail++;
  const [x, y] = [a.slice(head, a.length - tail), b.slice(head, b.length - tail)];
  const same = x.length > WORDS_MAX || y.length > WORDS_MAX ? [] : commonOf(x, y);
  const keptOf = (words: string[], side: 0 | 1): Spans => {
    const kept = new Set(same.map((pair) => pair[side] + head));
    return spansOf(words, (at) => at < head || at >= words.length - tail || kept.has(at));
  };
  const spans: [Spans, Spans] = [keptOf(a, 0), keptOf(b, 1)];
  const isLike = [old, now].every((text, side) => lengthOf(spans[side] ?? []) * 2 <= text.length);
  return isLike ? spans : [[], []];
}

function wordsOf(text: string): string[] {
  return text.match(/[\p{L}\p{N}_]+|\s+|./gsu) ?? [];
}

/** The longest list of words that both have in the same order: pairs of their places. */
function commonOf(x: readonly string[], y: readonly string[]): [number, number][] {
  const best = Array.from({ length: x.length + 1 }, () => new Uint16Array(y.length + 1));
  const at = (i: number, j: number): number => best[i]?.[j] ?? 0;
  for (let i = x.length - 1; i >= 0; i--)
    for (let j = y.length - 1; j >= 0; j--)
      (best[i] as Uint16Array)[j] =
        x[i] === y[j] ? at(i + 1, j + 1) + 1 : Math.max(at(i + 1, j), at(i, j + 1));
  const pairs: [number, number][] = [];
  for (let [i, j] = [0, 0]; i < x.length && j < y.length; )
    if (x[i] === y[j]) pairs.push([i++, j++]);
    else if (at(i + 1, j) >= at(i, j + 1)) i++;
    else j++;
  return pairs;
}

/** The words that are not kept, neighbours together. */
function spansOf(words: readonly string[], isKept: (at: number) => boolean): Spans {
  const spans: Spans = [];
  let from = 0;
  for (const [at, word] of words.entries()) {
    const to = from + word.length;
    const last = spans.at(-1);
    if (!isKept(at)) {
      if (last?.[1] === from) last[1] = to;
      else spans.push([from, to]);
    }
    from = to;
  }
  return spans;
}

function lengthOf(spans: Spans): number {
  return spans.reduce((sum, [from, to]) => sum + to - from, 0);
}
