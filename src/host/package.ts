/** Where the parts of this package lie, alike for the sources and for what is built from them. */
import fs from "node:fs";
import { extname, join } from "node:path";

// From src/host/ and from dist/chunks/, where the build puts this file, it is as far to everything.
const HERE = import.meta.dirname;

/** What runs as a process or a thread of its own. The build makes one file of each: scripts/bundle.mjs lists them too. */
export type EntryName = "worker/entry" | "worker/heartbeat-thread" | "roadmap/parse-thread";

const ENDING = extname(import.meta.filename);

/** Whether the sources run, and not what was built from them. */
export const isSource = ENDING === ".ts";

/** The file of an entry, absolute. The library (.mjs) starts the same ones as the command line. */
export function pathOfEntry(name: EntryName): string {
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
