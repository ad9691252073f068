/**
 * The old files that replacements of the plan moved away. An editor may still write into such a file, and a process may die during
 * a replacement. If one holds a person's text, it becomes the plan again, or is kept beside it. Only roadmap-file.ts uses this.
 */
import fs from "node:fs";
import { basename, dirname, join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { systemCode } from "../../../core/errors.ts";
import { syncDir } from "../../../host/documents.ts";
import { judgeOwner } from "../../../host/identity.ts";
import { hashOfFile, isSameFile, keyAt, linkWhereNothingIs, targetOf } from "./file-facts.ts";
import { SETTLED_MS } from "./saved-text.ts";

/** How long a replacement may leave the plan missing before another process puts the old file back (ms). */
const GAP_MS_MAX = 1000;
/** How long an old file is kept (ms). After this time, an editor that opened it before the replacement has written. */
const OLD_KEPT_MS = 1000;
const LEFTOVER =
  /^(.+)\.([0-9a-f]{12}-[0-9a-z]+-[0-9a-z]+-[0-9a-z]+)\.([0-9a-f]{16})\.([0-9a-f]{16})\.(next|old)$/;

/** What a check of the old files has found. */
export interface Settled {
  /** True: the plan's file now holds another writer's text. Read it again. */
  hasChanged: boolean;
  /** Paths of people's texts that lost to a later save. They are kept beside the plan. */
  conflicts: string[];
}

/** An old file that is kept while an editor may still write into it. */
export interface Old {
  path: string;
  /** Hash of the text that it held when it was replaced. */
  baseHash: string;
  /** Hash of the text that replaced it. */
  nextHash: string;
  /** The `FileStamp.key` of the file with that text. */
  key: string;
  /** When it was replaced (monotonic ms). */
  sinceMs: number;
}

/** Where the new text is staged. The old file is moved to the same name, with `old` instead of `next`. */
export function stagedPath(
  target: string,
  owner: string,
  baseHash: string,
  nextHash: string,
): string {
  return join(tempDirOf(target), `${basename(target)}.${owner}.${baseHash}.${nextHash}.next`);
}

export class ReplacedFiles {
  private olds: Old[] = [];
  /** Conflicts that are not reported yet. */
  private conflicts: string[] = [];
  /** Hash of the text that this process published last, which has no other writer's changes. */
  ownHash = "";

  /** @param path the path of the plan */
  constructor(
    private readonly path: string,
    private readonly isPower: boolean,
  ) {}

  add(old: Old): void {
    this.olds.push(old);
  }

  /** Checks old files into which a slow editor may still write. Cheap enough for every tick. */
  lookAgain(): Settled {
    const hasChanged = this.check(false);
    return { hasChanged, conflicts: this.conflicts.splice(0) };
  }

  /** Called before the process ends: gives editors a short time, then checks all old files. */
  async settle(): Promise<Settled> {
    const youngest = Math.max(0, ...this.olds.map((old) => old.sinceMs));
    const restMs = youngest + SETTLED_MS - performance.now();
    if (this.olds.length > 0 && restMs > 0) await wait(restMs);
    const hasChanged = this.check(true);
    return { hasChanged, conflicts: this.conflicts.splice(0) };
  }

  /** Cleans up after processes that died during a replacement. Must be called before the first read. */
  recoverLeftovers(): Settled {
    const target = targetOf(this.path);
    // A replacement never leaves a pipe or a directory.
    const found = leftoversOf(target).filter(
      ({ owner, path }) => judgeOwner(owner) === "dead" && fs.lstatSync(path).isFile(),
    );
    const olds = found
      .filter((one) => one.kind === "old")
      .map((old) => ({ ...old, ctimeMs: fs.lstatSync(old.path).ctimeMs }))
      .sort((a, b) => b.ctimeMs - a.ctimeMs);
    let hasChanged = false;
    for (const old of olds) {
      if (target === undefined) break;
      if (fs.existsSync(`${old.path}.aside`)) {
        this.finishPutBack(target, old);
        hasChanged = true;
      } else if (isHalfWay(old, found) && linkWhereNothingIs(old.path, target)) {
        hasChanged = true;
        fs.rmSync(old.path, { force: true });
      } else if (this.checkOld(target, old)) hasChanged = true;
    }
    for (const one of found) if (one.kind === "next") fs.rmSync(one.path, { force: true });
    return { hasChanged, conflicts: this.conflicts.splice(0) };
  }

  /** True if the plan is missing because a process is replacing it. If that process died or hangs, puts the old file back. */
  mendGap(absentMs: number): boolean {
    const target = targetOf(this.path);
    const found = leftoversOf(target);
    const old = found.find((one) => one.kind === "old" && isHalfWay(one, found));
    if (target === undefined || old === undefined) return false;
    // A process that wakes up later finds the name taken, as after a person's save, and starts again.
    if (absentMs > GAP_MS_MAX || judgeOwner(old.owner) === "dead")
      linkWhereNothingIs(old.path, target);
    return true;
  }

  /** Checks the old files, and forgets those that no editor can still write into. @returns true if the plan has changed */
  check(isLast: boolean): boolean {
    const nowMs = performance.now();
    const target = this.olds.length === 0 ? undefined : targetOf(this.path);
    if (target === undefined) return false;
    let hasChanged = false;
    const kept: Old[] = [];
    for (const old of this.olds) {
      const isYoung = !isLast && nowMs - old.sinceMs < OLD_KEPT_MS;
      if (isYoung && keyAt(old.path) === old.key) kept.push(old);
      else if (this.checkOld(target, old)) hasChanged = true;
    }
    this.olds = kept;
    return hasChanged;
  }

  /** Removes an old file that is unchanged. Otherwise it holds a person's text: makes it the plan again and returns true. */
  private checkOld(target: string, old: Pick<Old, "path" | "baseHash" | "nextHash">): boolean {
    const hash = hashOfFile(old.path);
    if (hash === undefined) return false;
    if (hash !== old.baseHash) {
      this.putBack(target, old);
      return true;
    }
    fs.rmSync(old.path, { force: true });
    return false;
  }

  /**
   * Makes the text in `old` the plan again: an editor saved it into a file that had just been replaced. If a person also saved
   * over the new file, that save is later and stays, and the text in `old` is kept beside it.
   */
  putBack(target: string, old: Pick<Old, "path" | "nextHash">): void {
    const aside = `${old.path}.aside`;
    try {
      fs.renameSync(target, aside);
    } catch (error) {
      if (systemCode(error) !== "ENOENT") throw error;
    }
    this.finishPutBack(target, old);
  }

  private finishPutBack(target: string, old: Pick<Old, "path" | "nextHash">): void {
    const aside = `${old.path}.aside`;
    const hash = hashOfFile(aside);
    const isOurs = hash === undefined || hash === old.nextHash || this.isKnown(target, hash);
    // A text that was saved while the name was free is later than both, and stays.
    const isPlaced = linkWhereNothingIs(isOurs ? old.path : aside, target);
    if (this.isPower) syncDir(dirname(target));
    const lost = isOurs ? (isPlaced ? [] : [old.path]) : isPlaced ? [old.path] : [old.path, aside];
    for (const path of lost) {
      if (!fs.existsSync(path) || isSameFile(path, target)) continue;
      const conflict = `${target}.conflict-${hashOfFile(path)?.slice(0, 8)}`;
      fs.renameSync(path, conflict);
      this.conflicts.push(conflict);
    }
    fs.rmSync(aside, { force: true });
    fs.rmSync(old.path, { force: true });
  }

  /** True if a mailchute process published this text just now: it has no other writer's changes. */
  private isKnown(target: string, hash: string): boolean {
    return hash === this.ownHash || leftoversOf(target).some(({ nextHash }) => nextHash === hash);
  }
}

/** A file that a replacement has staged or moved away, with what its name says. */
interface Leftover {
  path: string;
  owner: string;
  baseHash: string;
  nextHash: string;
  kind: string;
}

function leftoversOf(target: string | undefined): Leftover[] {
  if (target === undefined) return [];
  const dir = tempDirOf(target);
  return listNames(dir).flatMap((name) => {
    const [, file, owner = "", baseHash = "", nextHash = "", kind = ""] = LEFTOVER.exec(name) ?? [];
    const path = join(dir, name);
    return file === basename(target) ? { path, owner, baseHash, nextHash, kind } : [];
  });
}

/** True if the replacement that moved the old file away has not published the new one, which is still staged. */
function isHalfWay(old: Leftover, all: readonly Leftover[]): boolean {
  return all.some(({ path }) => path === old.path.replace(/old$/, "next"));
}

function tempDirOf(target: string): string {
  return join(dirname(target), ".tmp");
}

function listNames(dir: string): string[] {
  try {
    return fs.readdirSync(dir);
  } catch (error) {
    if (systemCode(error) === "ENOENT") return [];
    throw error;
  }
}
