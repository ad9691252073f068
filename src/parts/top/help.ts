/** The keys of `top`, for people. */

const KEYS: readonly (readonly [keys: string, what: string])[] = [
  ["up down, j k", "one row; in a log one line"],
  ["PgUp PgDn, g G", "a page; the first, the last"],
  ["tab, 1 2 3 4", "another pane"],
  ["enter, right", "open what is chosen: a task with its log, or the tasks of a group"],
  ["esc, left", "back; in the panes: no filter"],
  ["/", "show only rows with this text; enter on a whole id opens that task; in a log: search"],
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

export function helpLines(): string[] {
  return [
    "All that is shown comes from files, and every key that changes something writes one,",
    "as the command of that name does: written, taken up, done.",
    "",
    ...KEYS.map(([keys, what]) => `${keys.padEnd(KEYS_WIDTH)} ${what}`),
  ];
}
