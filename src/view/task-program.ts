/** What a task runs, where, with which variables, and what checks it, as rows of text. Pure. */
import { shellWord, wordWithLines } from "../text/shell-word.ts";

type JsonObject = Readonly<Record<string, unknown>>;

const HIDDEN = "…";

/** @param hidesValues of variables, which are often secrets */
export function programRows(
  task: JsonObject | null | undefined,
  hidesValues: boolean,
): [name: string, text: string][] {
  const { exec, cwd, env, env_from: from, verify } = task ?? {};
  const rows: [string, string][] = [];
  if (Array.isArray(exec)) rows.push(["exec", wordsOf(exec)]);
  if (typeof cwd === "string") rows.push(["cwd", cwd]);
  for (const [name, value] of Object.entries(env ?? {}))
    rows.push(["env", `${name}=${hidesValues ? HIDDEN : String(value)}`]);
  // A reference is no secret.
  for (const [name, value] of Object.entries(from ?? {}))
    rows.push(["env from", `${name}=${String(value)}`]);
  if (Array.isArray(verify))
    for (const argv of verify.every(Array.isArray) ? verify : [verify])
      rows.push(["verify", wordsOf(argv as unknown[])]);
  return rows;
}

function wordsOf(argv: readonly unknown[]): string {
  return argv.map((word) => wordOf(String(word))).join(" ");
}

/** As a person would type it: an option needs no quotes behind the program. */
function wordOf(word: string): string {
  return word.startsWith("-") && shellWord(word.slice(1)) === word.slice(1)
    ? word
    : wordWithLines(word);
}
