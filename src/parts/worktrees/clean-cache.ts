/** Lists what is kept for new worktrees, and removes what none has used for long, with what killed processes have left. */
import fs from "node:fs";
import { join } from "node:path";
import { isExpired, STAGED_MAX_AGE_MS } from "../../core/retention.ts";
import { mtimeOfDocument, readDocument } from "../../host/documents.ts";
import { listDir } from "../../host/list-dir.ts";
import { cacheDir } from "./names.ts";
import { discard } from "./remove.ts";
import { cacheNote, NOTE } from "./setup-cache.ts";

export interface CacheEntry {
  path: string;
  paths: string[];
  /** On the disk. */
  bytes: number;
  /** Epoch ms. */
  used_at_ms: number;
}

/** The newest first. @param worktreesDir undefined when there is none yet */
export function listCache(worktreesDir: string | undefined): CacheEntry[] {
  if (worktreesDir === undefined) return [];
  const dir = cacheDir(worktreesDir);
  const entries = listDir(dir).flatMap((name) => {
    const path = join(dir, name);
    const note = readDocument(join(path, NOTE), cacheNote);
    if (note === undefined) return [];
    const { paths, bytes } = note;
    return [{ path, paths, bytes, used_at_ms: mtimeOfDocument(join(path, NOTE)) ?? 0 }];
  });
  return entries.sort((a, b) => b.used_at_ms - a.used_at_ms);
}

/** @param days `retention.cache_days` */
export async function cleanCache(
  worktreesDir: string | undefined,
  { days, nowMs }: { days: number; nowMs: number },
): Promise<void> {
  if (worktreesDir === undefined) return;
  const dir = cacheDir(worktreesDir);
  const entries = new Map(listCache(worktreesDir).map((entry) => [entry.path, entry]));
  for (const name of listDir(dir)) {
    const path = join(dir, name);
    const entry = entries.get(path);
    const seenMs = entry?.used_at_ms ?? fs.lstatSync(path, { throwIfNoEntry: false })?.mtimeMs;
    if (seenMs === undefined) continue;
    const ageMs = nowMs - seenMs;
    // The others are locks, notes, and what a killed process had not finished.
    if (entry === undefined ? ageMs > STAGED_MAX_AGE_MS : isExpired(ageMs, days))
      await discard(path);
  }
}
