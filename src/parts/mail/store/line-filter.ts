/** Finds lines by texts that they have, in the bytes of many lines at once: so only lines that are asked for are decoded. Pure. */

/** Lines of other versions pass each filter, because they may write the same in another way. */
export interface LineFilter {
  /** A line has one of these texts, */
  any: readonly string[];
  /** or it does not have this one. */
  unless?: string;
  /** Which lines these are in the index of a full segment: addresses, and `KEYS`. Left out: no index knows them. */
  keys?: readonly string[];
}

/** Lines that an index finds besides those for an address: what is no line of ours, what needs a person, what is of another project. */
export const KEYS = { other: "other", human: "human", foreign: "foreign" } as const;

/** No line of ours passes. */
export const NO_LINES: LineFilter = { any: [], keys: [] };

/** How each line of ours begins. */
const OURS = Buffer.from('{"v":1,');

/** @returns whether the line from one place to another passes. Lines are asked about in order. @param filter undefined: all pass */
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

/** Each text is looked for once in all the bytes. */
function textTest(bytes: Buffer, text: string): (from: number, to: number) => boolean {
  const wanted = Buffer.from(text);
  let at = -1;
  /** Where the line before has it: many lines have a field at the same place. */
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

/** Whether a line is written by this version. */
export function isOurs(bytes: Buffer, from: number, to: number): boolean {
  // A line without anything in it ends a torn one.
  return to - from < OURS.length || isAt(bytes, from, OURS);
}

function isAt(bytes: Buffer, from: number, wanted: Buffer): boolean {
  const to = from + wanted.length;
  return to <= bytes.length && bytes.compare(wanted, 0, wanted.length, from, to) === 0;
}
