/** What is loaded with a file of src, by the imports that stand in the texts. What is imported when it is called does not count. */
import fs from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";

export const SRC = fileURLToPath(new URL("../../src", import.meta.url));

/** Files of src that come with a file: what it imports, and what that imports, but no types. */
export function comesWith(file: string, known = new Set<string>()): Set<string> {
  if (known.has(file)) return known;
  known.add(file);
  for (const target of importsOf(file))
    if (target.startsWith("."))
      comesWith(relative(SRC, resolve(dirname(join(SRC, file)), target)), known);
  return known;
}

/** The modules of Node that come with a file, by name. */
export function builtinsWith(file: string): string[] {
  const targets = [...comesWith(file)].flatMap(importsOf);
  return [...new Set(targets.filter((target) => target.startsWith("node:")))].sort();
}

function importsOf(file: string): string[] {
  const text = fs.readFileSync(join(SRC, file), "utf8");
  return [...text.matchAll(/^(?:import|export)\b[^;]*?from "([^"]+)"/gm)].flatMap(
    ([statement, target = ""]) => (/^(?:import|export) type\b/.test(statement) ? [] : [target]),
  );
}
