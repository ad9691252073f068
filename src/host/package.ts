/** Where the parts of this package lie, alike for the sources and for what is built from them. */
import fs from "node:fs";
import { extname, join } from "node:path";

// From src/host/ and from dist/chunks/, where the build puts this file, it is as far to everything.
const HERE = import.meta.dirname;

const ENDING = extname(import.meta.filename);

/** Whether the sources run, and not what was built from them. */
export const isSource = ENDING === ".ts";

/**
 * The absolute path of a file that runs as a process or a thread of its own. The build makes one file of each (scripts/bundle.mjs). The
 * library (.mjs) starts the same ones as the command line.
 * @param name path below src, as `worker/entry`: it is called `entry`, or ends in `-thread`
 */
export function pathOfEntry(name: string): string {
  return join(HERE, "..", `${name}${ENDING === ".mjs" ? ".cjs" : ENDING}`);
}

/** The file of an ES module that holds nothing, absolute. The build keeps it as it is: scripts/bundle.mjs lists it, too. */
export function pathOfNothing(): string {
  return join(HERE, "..", `agents/nothing${isSource ? ".ts" : ".js"}`);
}

/** A path in the package, absolute. */
export function pathInPackage(path: string): string {
  return join(HERE, "../..", path);
}

/** The version in package.json. */
export function readVersion(): string {
  const text = fs.readFileSync(pathInPackage("package.json"), "utf8");
  return (JSON.parse(text) as { version: string }).version;
}
