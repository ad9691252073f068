/**
 * The files that a replacement of the plan took away. An editor may still write into such a file, and a process may have died in the
 * middle. If a person's text is in one, it comes into force again, or is kept beside the plan. Used by roadmap-file.ts alone.
 */
import fs from "node:fs";
import { basename, dirname, join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { systemCode } from "../../../core/errors.ts";
import { syncDir } from "../../../host/documents.ts";
import { judgeOwner } from "../../../host/identity.ts";
import { hashOfFile, isSameFile, keyAt, linkWhereNothingIs, targetOf } from "./file-facts.ts";
import { SETTLED_MS } from "./saved-text.ts";

/** A process that was stopped in the middle of a replacement has had time enough (ms). */
const GAP_MS_MAX = 1000;
/** An editor that opened the old file before it was replaced has written into it by then (ms). */
const OLD_KEPT_MS = 1000;
const LEFTOVER =
  /^(.+)\.([0-9a-f]{12}-[0-9a-z]+-[0-9a-z]+-[0-9a-z]+)\.([0-9a-f]{16})\.([0-9a-f]{16})\.(next|old)$/;

/** What was found of a process that died, or of an editor that was slow. */
export interface Settled {
  /** True: the file now holds another writer's text; read it again. */
  hasChanged: boolean;
  /** Texts of people that lost against a later save, kept beside the plan under these paths. */
  conflicts: string[];
}

/** A file that was taken away, and is kept while an editor may still write into it. */
export interface Old {
  path: string;
  /** Of the text that it must still hold. */
  baseHash: string;
  /** Of the text that was put in its place. */
  nextHash: string;
  /** Of the file, once it was found to hold that text. */
  key: string;
  /** Monotonic (ms). */
  sinceMs: number;
}

/** Where the new text is staged; the old one goes to the same name with `old` for `next`. */
export function stagedPath(
  target: string,
  owner: string,
  baseHash: string,
  nextHash: string,
): string {
  return join(tempDirOf(target), `${basename(target)}.${owner}.${baseHash}.${nextHash}.next`);
}

export class ReplacedFiles {
  private readonly path: string;
  private readonly isPower: boolean;
  private olds: Old[] = [];
  /** Not yet reported. */
  private conflicts: string[] = [];
  /** Of the text that we published last: no other writer's is in it. */
  ownHash = "";

  /** @param path of the plan */
  constructor(path: string, isPower: boolean) {
    this.path = path;
    this.isPower = isPower;
  }

  add(old: Old): void {
    this.olds.push(old);
  }

  /** Looks again at what was replaced, where an editor may have been slow. Cheap; for every tick. */
  lookAgain(): Settled {
    const hasChanged = this.check(false);
    return { hasChanged, conflicts: this.conflicts.splice(0) };
  }

  /** Before the end of a process: looks at all that was replaced, once editors had some time. */
  async settle(): Promise<Settled> {
    const youngest = Math.max(0, ...this.olds.map((old) => old.sinceMs));
    const restMs = youngest + SETTLED_MS - performance.now();
    if (this.olds.length > 0 && restMs > 0) await wait(restMs);
    const hasChanged = this.check(true);
    return { hasChanged, conflicts: this.conflicts.splice(0) };
  }

  /** What processes left that died in the middle of a replacement. To be called before the first read. */
  recoverLeftovers(): Settled {
    let hasChanged = false;
    const target = targetOf(this.path);
    if (target === undefined) return { hasChanged, conflicts: [] };
    const dir = tempDirOf(target);
    const names = listNames(dir);
    const found = names.flatMap((name) => {
      const [, file, owner, baseHash, nextHash, kind] = LEFTOVER.exec(name) ?? [];
      if (file !== basename(target) || owner === undefined || baseHash === undefined) return [];
      if (nextHash === undefined || judgeOwner(owner) !== "dead") return [];
      const path = join(dir, name);
      const stats = fs.lstatSync(path);
      // A pipe, or a directory, is none that a replacement has left.
      return stats.isFile() ? [{ path, kind, baseHash, nextHash, ctimeMs: stats.ctimeMs }] : [];
    });
    const olds = found.filter((one) => one.kind === "old").sort((a, b) => b.ctimeMs - a.ctimeMs);
    for (const old of olds) {
      const isHalfWay = names.includes(basename(old.path).replace(/old$/, "next"));
      if (fs.existsSync(`${old.path}.aside`)) {
        this.finishPutBack(target, old);
        hasChanged = true;
      } else if (isHalfWay && linkWhereNothingIs(old.path, target)) {
        hasChanged = true;
        fs.rmSync(old.path, { force: true });
      } else if (this.checkOld(target, old)) hasChanged = true;
    }
    for (const one of found) if (one.kind === "next") fs.rmSync(one.path, { force: true });
    return { hasChanged, conflicts: this.conflicts.splice(0) };
  }

  /** Whether a missing plan is one that a process is replacing; one that does not go on is helped. */
  mendGap(absentMs: number): boolean {
    const target = targetOf(this.path);
    if (target === undefined) return false;
    const dir = tempDirOf(target);
    const names = listNames(dir).filter((name) => LEFTOVER.exec(name)?.[1] === basename(target));
    const old = names.find(
      (name) => names.includes(name.replace(/old$/, "next")) && name.endsWith("old"),
    );
    if (old === undefined) return false;
    const owner = LEFTOVER.exec(old)?.[2] ?? "";
    // If it wakes up it finds the name taken, as if a person had saved, and starts again.
    if (absentMs > GAP_MS_MAX || judgeOwner(owner) === "dead")
      linkWhereNothingIs(join(dir, old), target);
    return true;
  }

  /** Looks at old files again, and lets go of those that no process can still be writing into. True: the plan is another now. */
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

  /** Removes an old file that is what we took it for; else a person's text is in it, which comes into force: true. */
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
   * The text in `old` was saved into a file that we had replaced: it takes the place of ours. If a person saved
   * over ours too, that is later and stays, and the older one is kept beside it.
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
    // What was saved into the gap is later than both, and stays.
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

  /** True for texts that we, or another process of ours, published just now: no other writer's are in them. */
  private isKnown(target: string, hash: string): boolean {
    return (
      hash === this.ownHash ||
      listNames(tempDirOf(target)).some((name) => LEFTOVER.exec(name)?.[4] === hash)
    );
  }
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
