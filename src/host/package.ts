/** Finds files of this package. The same code works from the sources and from the built files. */
import fs from "node:fs";
import { extname, join } from "node:path";

// The build puts this file into dist/chunks/, which is as deep as src/host/.
const HERE = import.meta.dirname;

const ENDING = extname(import.meta.filename);

/** Whether the sources run, and not the built files. */
export const isSource = ENDING === ".ts";

/**
 * The absolute path of a file that runs as its own process or thread. The build makes one file of each (scripts/bundle.mjs). The
 * library (.mjs) starts the same files as the command line.
 * @param name path below src, such as `worker/entry`: its last part is `entry`, or ends in `-thread`
 */
export function pathOfEntry(name: string): string {
  return join(HERE, "..", `${name}${ENDING === ".mjs" ? ".cjs" : ENDING}`);
}

/** A text that changes when the installed files are replaced, as by an upgrade; undefined while they are missing. */
export function markOfPackage(): string | undefined {
  const facts = fs.statSync(pathOfEntry("worker/entry"), { throwIfNoEntry: false });
  return facts && `${facts.ino} ${facts.mtimeMs} ${facts.size}`;
}

/** The absolute path of an empty ES module. The build copies it unchanged: scripts/bundle.mjs lists it, too. */
export function pathOfNothing(): string {
  return join(HERE, "..", `agents/nothing${isSource ? ".ts" : ".js"}`);
}

/** The absolute path of a file in the package. */
export function pathInPackage(path: string): string {
  return join(HERE, "../..", path);
}

export function readVersion(): string {
  const text = fs.readFileSync(pathInPackage("package.json"), "utf8");
  return (JSON.parse(text) as { version: string }).version;
}
