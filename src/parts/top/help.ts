/** Describes the keys of `top` for people. */
import { fold } from "../../text/render.ts";

const KEYS: readonly (readonly [keys: string, what: string])[] = [
  ["up down, j k", "one row; in a log one line"],
  ["PgUp PgDn, g G", "a page; the first, the last"],
  ["tab, 1 to 6", "another pane: runs, waits, failed, needs you, just ended, groups and limits"],
  ["enter, right", "open what is chosen: a task with its log, or the tasks of a group"],
  ["esc, left", "back; in the panes: no filter"],
  [
    "/",
    "show only rows with this text, waiting tasks one a row; enter on a whole id opens that task; in a log: search",
  ],
  ["n N", "the next, the one before"],
  ["r", "retry: the task, or all of a group of failures"],
  ["c", "cancel; asks first, y ends the task for good, b puts it back"],
  ["p", "pause the pool, or let it go on"],
  ["+ -", "one slot more, one less"],
  ["a", "answer the question"],
  ["f o w", "in a log: follow its end; the other stream; wrap long lines"],
  ["ctrl-l", "draw everything again"],
  ["? q", "this page; end (tasks go on)"],
];
const KEYS_WIDTH = 15;

/** `j k: one row`, one text for each. */
export function keyTexts(): string[] {
  return KEYS.map(([keys, what]) => `${keys}: ${what}`);
}

/** The page of keys, with a note below. @param width cells */
export function helpLines(width: number): string[] {
  const room = Math.max(10, width - KEYS_WIDTH - 1);
  return [
    ...KEYS.flatMap(([keys, what]) =>
      fold(what, room).map((line, i) => `${(i === 0 ? keys : "").padEnd(KEYS_WIDTH)} ${line}`),
    ),
    "",
    ...fold(
      "All that is shown comes from files. A key that changes something writes a file, too, as the command of that name does.",
      width,
    ),
  ];
}
