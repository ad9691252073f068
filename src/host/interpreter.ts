/** Says why the system does not find the interpreter of a program that is there. Reads only. */
import { findProgram } from "./find-program.ts";
import { readHead } from "./regular-file.ts";

/** More than Linux reads of a first line (256 bytes). */
const HEAD_BYTES = 1024;

/**
 * For a program whose start failed with ENOENT.
 * @param path the value of PATH
 * @param cwd for a relative path
 * @returns undefined when the program itself is missing, or names no interpreter
 */
export function explainInterpreter(
  program: string,
  path: string | undefined,
  cwd: string,
): string | undefined {
  const file = findProgram(program, path, cwd);
  if (file === undefined) return undefined;
  const [first = ""] = readHead(file, HEAD_BYTES).split("\n");
  // As the system reads it: only spaces and tabs end the name.
  const interpreter = /^#![ \t]*([^ \t]+)/.exec(first)?.[1];
  if (interpreter === undefined) return undefined;
  const named = JSON.stringify(interpreter);
  return interpreter.endsWith("\r")
    ? `its first line ends as on Windows (CRLF), and no program is named ${named}: sed -i 's/\\r$//' ${file}`
    : `its first line names ${named}, which is not there`;
}
