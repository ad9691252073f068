/** Text from a task or a file, for screens on which each cell counts. Pure. */
import { isPlain } from "../core/visible.ts";
import { safe } from "./render.ts";

/** More marks on one letter draw over other lines. */
const MANY_MARKS = /(\p{M}{2})\p{M}+/gu;
/** It changes the width of the character before it, on some terminals. */
const PICTURE_MARK = /\ufe0f/g;

/** Text from a task or a file on one line, which steers nothing and takes the cells that we count. */
export function inert(text: string): string {
  if (isPlain(text)) return text;
  return safe(text).replace(PICTURE_MARK, "").replace(MANY_MARKS, "$1");
}
