/** Quotes a word for a POSIX shell, so that a person can paste a command line. */

/** A control character could end a pasted line. It is shown as `?`. */
const CONTROL = /\p{C}/gu;
const CONTROL_IN_LINES = /(?!\n)\p{C}/gu;

export function shellWord(word: string): string {
  return quoted(word.replace(CONTROL, "?"));
}

/** For what is shown and not pasted: a script keeps its lines. */
export function wordWithLines(word: string): string {
  return quoted(word.replace(CONTROL_IN_LINES, "?"));
}

function quoted(plain: string): string {
  return /^[\w@%+=:,./-]+$/.test(plain) && !plain.startsWith("-")
    ? plain
    : `'${plain.replaceAll("'", "'\\''")}'`;
}
