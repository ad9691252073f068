/** Makes the ids of tasks that belong to another one, such as its landing. Pure. Every legal id has a legal one of each kind. */
import { ID_CHARS_MAX } from "./limits.ts";
import { foldId, isId } from "./names.ts";

/**
 * Appends an ending to an id. Where the two together are no id, because they are too long or an id may not have two dots in a row, the
 * id is shortened and gets a hash.
 * @param ending begins with a dot
 */
export function derivedId(id: string, ending: string): string {
  if (isId(id + ending)) return id + ending;
  const hash = shortHash(foldId(id));
  return `${id.slice(0, ID_CHARS_MAX - ending.length - hash.length - 1)}-${hash}${ending}`;
}

/** 16 hexadecimal digits: FNV-1a with two seeds. It is good enough for names, because no person makes them collide on purpose. */
export function shortHash(text: string): string {
  return [0x811c9dc5, 0x01234567]
    .map((seed) => {
      let hash = seed;
      for (let at = 0; at < text.length; at++)
        hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193);
      return (hash >>> 0).toString(16).padStart(8, "0");
    })
    .join("");
}
