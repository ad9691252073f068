/** Quotes a word for a POSIX shell, so that a person can paste a command line. */

/** A control character could end a pasted line. It is shown as `?`. */
const CONTROL = /\p{C}/gu;

export function shellWord(word: string): string {
  const plain = word.replace(CONTROL, "?");
  return /^[\w@%+=:,./-]+$/.test(plain) && !plain.startsWith("-")
    ? plain
    : `'${plain.replaceAll("'", "'\\''")}'`;
}
