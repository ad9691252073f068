/**
 * Notices what a run changed in the settings of its repository: `.git/config`, hooks, filters. git obeys them in every worktree, even in
 * that of a person. All processes of one user can write there, so this can only report a change, not prevent it.
 */
import { createHash } from "node:crypto";
import fs from "node:fs";
import { join } from "node:path";
import { lookInto } from "../host/regular-file.ts";
import { makeRef } from "./refs.ts";
import { atCommonDir, type Repository } from "./repository.ts";
import { askGit, gitList } from "./run-git.ts";

/** A hash of the value of each setting, and of each hook. */
export type WatchedSettings = Readonly<Record<string, string>>;

/** What git itself writes when an agent pushes a branch or looks at a submodule. */
const HARMLESS =
  /^(?:branch\..+\.(?:remote|merge|rebase)|submodule\..+\.(?:url|active)|user\.\w+)$/;
const HOOK_BYTES_MAX = 1 << 20;

export async function readSettings({ commonDir, env }: Repository): Promise<WatchedSettings> {
  const call = { cwd: commonDir, env: { ...env, GIT_DIR: commonDir } };
  const listed = await gitList(call, "config", "--local", "--includes", "--list", "-z");
  const found = new Map<string, string[]>();
  for (const entry of listed) {
    const lineEnd = entry.indexOf("\n");
    const key = lineEnd === -1 ? entry : entry.slice(0, lineEnd);
    if (HARMLESS.test(key)) continue;
    found.set(key, [...(found.get(key) ?? []), lineEnd === -1 ? "" : entry.slice(lineEnd + 1)]);
  }
  const hooks = [join(commonDir, "info", "attributes"), ...hooksIn(join(commonDir, "hooks"))];
  const texts = hooks.flatMap((path) => {
    const text = readStart(path);
    return text === undefined ? [] : [[path.slice(commonDir.length + 1), hashOf(text)] as const];
  });
  return Object.fromEntries([
    ...[...found].map(([key, values]) => [key, hashOf(values.join("\0"))] as const),
    ...texts,
  ]);
}

/** The names of settings and hooks that are new, gone or different. */
export function changesBetween(before: WatchedSettings, after: WatchedSettings): string[] {
  const names = new Set([...Object.keys(before), ...Object.keys(after)]);
  return [...names].filter((name) => before[name] !== after[name]).sort();
}

/** Stores in git which settings changed: makes a ref to a text with their names. @returns false when the ref exists. @throws ErrGit */
export async function markChanges(
  repository: Repository,
  name: string,
  changed: readonly string[],
): Promise<boolean> {
  const call = { ...atCommonDir(repository), input: `${changed.join("\n")}\n` };
  const { out } = await askGit(call, "hash-object", "-w", "--stdin");
  return makeRef(repository, { name, commit: out.toString().trim() });
}

/** The message about these changes for people. */
export function changesText({ commonDir }: Repository, changed: readonly string[]): string {
  return `while it ran, settings or hooks of ${commonDir} changed: ${changed.join(", ")}. git obeys them in your own tree, too: look at them`;
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
