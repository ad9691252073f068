/** Programs that are broken on purpose: a check that does not notice them proves nothing. */
import fs from "node:fs";
import os from "node:os";
import { join, parse } from "node:path";
import { fileURLToPath } from "node:url";
import { type OnEnd, tempDir } from "./temp-dir.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));

/** A script for `countingGit`: a git that does not make saves, moves a target without its old value or twice, or does not keep what was rebased. */
export function brokenGit(name: "save" | "move" | "twice" | "landing"): string {
  return join(ROOT, "test", "support", "broken", `${name}.sh`);
}

export interface Change {
  /** Of the build, without the hash in its name. */
  file: string;
  from: string;
  to: string;
}

/** Landings do without their check. */
export const UNCHECKED: Change = {
  file: "dist/worker/land.cjs",
  from: "await findRed(stack.length, async (count) => {",
  to: "await (async () => ({ green: stack.length }))(stack.length, async (count) => {",
};

/** The whole stack lands, although only its lower part is green. */
export const WHOLE_STACK: Change = {
  file: "dist/worker/land.cjs",
  from: "const layers = stack.slice(0, green);",
  to: "const layers = stack;",
};

/** Copies the build and changes the copy. @returns its launcher */
export function breakBuild(onEnd: OnEnd, ...changes: readonly Change[]): string {
  const dir = fs.mkdtempSync(join(os.tmpdir(), "mailchute-broken-"));
  onEnd(() => fs.rmSync(dir, { recursive: true, maxRetries: 5 }));
  for (const part of ["bin", "dist", "templates", "package.json"])
    fs.cpSync(join(ROOT, part), join(dir, part), { recursive: true });
  fs.symlinkSync(join(ROOT, "node_modules"), join(dir, "node_modules"));
  for (const { file, from, to } of changes) {
    const path = chunkAt(join(dir, file));
    const text = fs.readFileSync(path, "utf8");
    if (!text.includes(from)) throw new Error(`${file} has no line ${from}`);
    fs.writeFileSync(path, text.replace(from, to));
  }
  return join(dir, "bin", "mailchute.js");
}

/** The file of this name, or with the hash of its content in it. */
function chunkAt(path: string): string {
  const { dir, name, ext } = parse(path);
  const isIt = (found: string): boolean =>
    found === `${name}${ext}` ||
    (found.startsWith(`${name}-`) && found.length === `${name}-12345678${ext}`.length);
  const found = fs.readdirSync(dir).filter((one) => one.endsWith(ext) && isIt(one));
  if (found.length !== 1) throw new Error(`${path}: ${found.length} files of this name`);
  return join(dir, found[0] ?? "");
}

/** Copies the sources and changes the copy. @returns the directory with `src` in it */
export function breakSources(...changes: readonly Change[]): string {
  const dir = tempDir();
  fs.cpSync(join(ROOT, "src"), join(dir, "src"), { recursive: true });
  fs.symlinkSync(join(ROOT, "node_modules"), join(dir, "node_modules"));
  for (const { file, from, to } of changes) {
    const path = join(dir, "src", file);
    const text = fs.readFileSync(path, "utf8");
    if (!text.includes(from)) throw new Error(`${file} has no line ${from}`);
    fs.writeFileSync(path, text.replace(from, to));
  }
  return dir;
}
