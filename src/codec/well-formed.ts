/**
 * Finds texts that are not well formed: half of a surrogate pair, as other programs write a file name that is not UTF-8. Such a text
 * would become U+FFFD on its way to a program or a file, and then name another file. Pure.
 */

export const HALF_CHARACTER =
  "it has half of a character (a lone surrogate), as in a file name that is not UTF-8: no program would get the same text";

/** Matches only a half, not a pair. */
const HALF = /\p{Cs}/u;

export function hasHalfCharacter(text: string): boolean {
  return HALF.test(text);
}

/** The place of the first such text or key, such as `exec[1]`; undefined when there is none. The value was parsed, so its depth is bounded. */
export function findHalfCharacter(value: unknown, place = ""): string | undefined {
  if (typeof value === "string") return hasHalfCharacter(value) ? place : undefined;
  if (typeof value !== "object" || value === null) return undefined;
  const isList = Array.isArray(value);
  for (const [key, member] of Object.entries(value)) {
    if (!isList && hasHalfCharacter(key)) return place === "" ? "a key" : `a key of ${place}`;
    const found = findHalfCharacter(member, isList ? `${place}[${key}]` : join(place, key));
    if (found !== undefined) return found;
  }
  return undefined;
}

function join(place: string, key: string): string {
  const name = key === "" ? '""' : key;
  return place === "" ? name : `${place}.${name}`;
}
