/** Text from a task or a file, for screens on which each cell counts. Pure. */
import { isPlain } from "../core/visible.ts";
import { safe } from "./render.ts";

/** Three or more marks on one letter would draw over other lines. */
const MANY_MARKS = /(\p{M}{2})\p{M}+/gu;
/** On some terminals, this mark changes the width of the character before it. */
const PICTURE_MARK = /\ufe0f/g;

/** Makes text from a task or a file safe for one line: it steers no terminal, and takes exactly the cells that we count. */
export function inert(text: string): string {
  if (isPlain(text)) return text;
  return safe(text).replace(PICTURE_MARK, "").replace(MANY_MARKS, "$1");
}
