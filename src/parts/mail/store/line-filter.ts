/** Finds lines by the texts in them, in the bytes of many lines at once. So only wanted lines are decoded. Pure. */

/** Lines of other versions pass every filter, because they may write the same values in another way. */
export interface LineFilter {
  /** A line passes if it has one of these texts, */
  any: readonly string[];
  /** or if it does not have this one. */
  unless?: string;
  /** The keys of these lines in the index of a full segment: addresses, and `KEYS`. Left out: no index knows the lines. */
  keys?: readonly string[];
}

/** Keys of an index besides addresses: lines of other versions, messages that need a person, messages of other projects. */
export const KEYS = { other: "other", human: "human", foreign: "foreign" } as const;

/** No line of ours passes. */
export const NO_LINES: LineFilter = { any: [], keys: [] };

/** How each line of ours begins. */
const OURS = Buffer.from('{"v":1,');

/** @returns a test for the line between two offsets. Call it for the lines in order. @param filter undefined: all lines pass */
export function lineTest(
  bytes: Buffer,
  filter: LineFilter | undefined,
): (from: number, to: number) => boolean {
  if (filter === undefined) return () => true;
  const any = filter.any.map((text) => textTest(bytes, text));
  const has = filter.unless === undefined ? undefined : textTest(bytes, filter.unless);
  return (from, to) =>
    any.some((test) => test(from, to)) || has?.(from, to) === false || !isOurs(bytes, from, to);
}

/** Searches all the bytes only once for a text, because the lines come in order. */
function textTest(bytes: Buffer, text: string): (from: number, to: number) => boolean {
  const wanted = Buffer.from(text);
  let at = -1;
  /** The offset of the text in the last line that had it: many lines have a field at the same place. */
  let offset = 0;
  return (from, to) => {
    if (at >= from) return at < to;
    const guess = from + offset;
    if (guess + wanted.length <= to && isAt(bytes, guess, wanted)) return true;
    const found = bytes.indexOf(wanted, from);
    at = found === -1 ? Number.POSITIVE_INFINITY : found;
    if (at < to) offset = at - from;
    return at < to;
  };
}

/** True if this version wrote the line. */
export function isOurs(bytes: Buffer, from: number, to: number): boolean {
  // An empty line ends a torn one.
  return to - from < OURS.length || isAt(bytes, from, OURS);
}

function isAt(bytes: Buffer, from: number, wanted: Buffer): boolean {
  const to = from + wanted.length;
  return to <= bytes.length && bytes.compare(wanted, 0, wanted.length, from, to) === 0;
}
