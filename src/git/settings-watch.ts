/** Reads the settings and hooks of a repository as they stand now, and finds what has changed. A run can write there; git starts no program for this. */
import { createHash } from "node:crypto";
import fs from "node:fs";
import { join } from "node:path";
import { lookInto } from "../host/regular-file.ts";
import { isHarmless, parseSettings, type Setting } from "./obeyed-settings.ts";
import { gitList } from "./run-git.ts";

/** A hash of the value of each setting, and of each hook. */
export type WatchedSettings = Readonly<Record<string, string>>;

export interface CurrentSettings {
  settings: Setting[];
  /** The text of `info/attributes`. */
  attributes: string;
  watched: WatchedSettings;
}

/** The name under which a change of this file is known. */
export const ATTRIBUTES = "info/attributes";
/** Names other places of objects. What only such a place has goes with it. */
const ALTERNATES = "objects/info/alternates";
const HOOK_BYTES_MAX = 1 << 20;

/** @throws ErrGit */
export async function readSettings(commonDir: string): Promise<CurrentSettings> {
  const call = { cwd: commonDir, env: { GIT_DIR: commonDir }, isPlain: true };
  const listed = await gitList(call, "config", "--local", "--includes", "--list", "-z");
  const settings = parseSettings(listed);
  const attributes = readStart(join(commonDir, ATTRIBUTES));
  const others = [join(commonDir, ALTERNATES), ...hooksIn(join(commonDir, "hooks"))];
  const files = others.map((path) => [path, readStart(path)] as const);
  const hashes = [[join(commonDir, ATTRIBUTES), attributes] as const, ...files].flatMap(
    ([path, text]) =>
      text === undefined ? [] : [[path.slice(commonDir.length + 1), hashOf(text)] as const],
  );
  const watched = { ...watchedOf(settings), ...Object.fromEntries(hashes) };
  return { settings, attributes: attributes?.toString() ?? "", watched };
}

/** Those of the settings alone, without the hooks. */
export function watchedOf(settings: readonly Setting[]): WatchedSettings {
  const values = new Map<string, string[]>();
  for (const [name, value] of settings)
    if (!isHarmless(name)) values.set(name, [...(values.get(name) ?? []), value ?? ""]);
  return Object.fromEntries([...values].map(([name, all]) => [name, hashOf(all.join("\0"))]));
}

/** The names of settings and hooks that are new, gone or different. */
export function changesBetween(before: WatchedSettings, after: WatchedSettings): string[] {
  const names = new Set([...Object.keys(before), ...Object.keys(after)]);
  return [...names].filter((name) => before[name] !== after[name]).sort();
}

function hooksIn(dir: string): string[] {
  try {
    return fs
      .readdirSync(dir)
      .filter((name) => !name.endsWith(".sample"))
      .map((name) => join(dir, name));
  } catch {
    return [];
  }
}

function readStart(path: string): string | Buffer | undefined {
  try {
    const { stats, bytes } = lookInto(path, { isNamed: true, bytesMax: HOOK_BYTES_MAX });
    return bytes ?? (stats.isFile() ? "large" : "no file");
  } catch {
    return undefined;
  }
}

function hashOf(text: string | Buffer): string {
  return createHash("sha256").update(text).digest("hex").slice(0, 16);
}
