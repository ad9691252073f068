/** Sweep: removes old settled records, old staged files and old notes of `submitOnce`. It never touches a file that recovery may still need. */
import { systemCode } from "../../core/errors.ts";
import { DEDUP_WINDOW_MS_MAX } from "../../core/limits.ts";
import {
  besideId,
  errorName,
  parseErrorName,
  parseName,
  parseSettledName,
  parseStagedResults,
  resultName,
  resultsName,
} from "../../core/names.ts";
import { isExpired, isStagedLeftover } from "../../core/retention.ts";
import { removeTree } from "../../host/remove-tree.ts";
import { commandOfNote } from "../commands/command-subject.ts";
import { randomToken } from "../files/random.ts";
import { unlinkIfThere } from "../files/steps.ts";
import type { FileFacts, Walk } from "../files/storage.ts";
import { onceDir } from "../files/tickets.ts";
import { pathIn, type Trays } from "../files/trays.ts";
import { hasLive } from "../find/locate.ts";
import { neededResults } from "../find/needed-results.ts";
import { dropOldKey, keysDir } from "../submit/keys.ts";
import { isOldNote } from "../submit/submit-once.ts";

export interface CleanRules {
  outboxDays: number;
  failedDays: number;
  isDryRun?: boolean;
  /** Called with the error when one file cannot be inspected or removed; the sweep continues with the others. */
  onError?: (error: unknown) => void;
  /** Records on which waiting tasks depend are kept: after a restart only they show that a dependency is met. */
  isNeeded?: (id: string) => boolean;
}

export interface SweepCounts {
  results: number;
  errors: number;
  staged: number;
}

const LONG_AGO_MS = 0;

type SweptDir = "outbox" | "failed" | "tmp" | "once" | "keys";

/** One pass over outbox, failed, .tmp, .once and .keys, in slices. */
export class Sweep {
  readonly counts: SweepCounts = { results: 0, errors: 0, staged: 0 };
  /** Old folders that were refused. The caller removes them, because a removal may take long. */
  readonly folders: string[] = [];
  private readonly todo: SweptDir[] = ["outbox", "failed", "tmp", "once", "keys"];
  private walk: Walk | undefined;
  private now: number | undefined;

  constructor(
    private readonly trays: Trays,
    private readonly rules: CleanRules,
  ) {}

  /** The current time by the clock of the swept file system (epoch ms). Ages are counted from it. A dry run uses our own clock. */
  get nowMs(): number {
    const { trays, rules } = this;
    this.now ??= rules.isDryRun === true ? trays.clock.wallMs() : fileTimeMs(trays);
    return this.now;
  }

  /** Looks at up to `max` names. True when the pass is over. */
  next(max: number): boolean {
    const tray = this.todo[0];
    if (tray === undefined) return true;
    try {
      this.walk ??= this.trays.storage.walk(this.dirOf(tray));
      const names = this.walk.next(max);
      for (const name of names) this.tryLook(tray, name);
      if (names.length > 0) return false;
    } catch (error) {
      if (systemCode(error) !== "ENOENT") throw error;
    }
    this.close();
    this.todo.shift();
    return this.todo.length === 0;
  }

  close(): void {
    this.walk?.close();
    this.walk = undefined;
  }

  /** Looks at one file. If it cannot be removed, such as another user's file in a sticky directory, it stays and the sweep continues. */
  private tryLook(tray: SweptDir, name: string): void {
    const { onError } = this.rules;
    try {
      this.look(tray, name);
    } catch (error) {
      if (onError === undefined) throw error;
      onError(error);
    }
  }

  private dirOf(tray: SweptDir): string {
    if (tray === "keys") return keysDir(this.trays);
    return tray === "once" ? onceDir(this.trays) : this.trays[tray];
  }

  private look(tray: SweptDir, name: string): void {
    const path = pathIn(this.dirOf(tray), name);
    const facts = this.trays.storage.look(path);
    if (facts === undefined) return;
    if (facts.kind === "directory") {
      if (tray === "failed" && this.isOldFailure(name, this.nowMs - bornMs(name, facts)))
        this.folders.push(path);
      return;
    }
    const ageMs = this.nowMs - (tray === "tmp" ? facts.mtimeMs : bornMs(name, facts));
    if (tray === "keys") this.lookAtKey(name, ageMs);
    else if (tray === "once") {
      if (isOldNote(this.trays, name, ageMs)) this.remove(path, "staged");
    } else if (tray === "tmp") {
      if (this.isLeftover(name, facts.ino, ageMs)) this.remove(path, "staged");
    } else if (tray === "outbox") {
      const id = parseSettledName(name);
      if (
        id !== undefined &&
        isExpired(ageMs, this.rules.outboxDays) &&
        this.rules.isNeeded?.(id) !== true
      )
        this.remove(path, "results");
    } else if (this.isOldFailure(name, ageMs)) {
      const id = parseErrorName(name);
      if (id === undefined || this.rules.isNeeded?.(id) !== true) this.remove(path, "errors");
    }
  }

  private lookAtKey(name: string, ageMs: number): void {
    if (ageMs < DEDUP_WINDOW_MS_MAX) return;
    if (this.rules.isDryRun === true || dropOldKey(this.trays, name)) this.counts.staged++;
  }

  private isOldFailure(name: string, ageMs: number): boolean {
    return /\.(?:nd)?json$/.test(name) && isExpired(ageMs, this.rules.failedDays);
  }

  private isLeftover(name: string, ino: number, ageMs: number): boolean {
    const { storage, processing, outbox, failed } = this.trays;
    const prefix = parseStagedResults(name);
    if (prefix !== undefined) return this.isLeftResults(prefix, ino, ageMs);
    const command = commandOfNote(name);
    if (command !== undefined) {
      const hasMarker = hasLive(this.trays, command);
      return isStagedLeftover({ ageMs, hasMarker, isPublished: false });
    }
    const marker = parseName(name.replace(/\.tmp$/, ""));
    if (marker === undefined)
      return isStagedLeftover({ ageMs, hasMarker: false, isPublished: false });
    const finals = [marker.id, besideId(marker)].flatMap((id) => [
      pathIn(outbox, resultName(id)),
      pathIn(failed, errorName(id)),
    ]);
    return isStagedLeftover({
      ageMs,
      hasMarker: storage.look(pathIn(processing, name)) !== undefined,
      isPublished: finals.some((path) => storage.look(path)?.ino === ino),
    });
  }

  /** Whether the results of a batch are left over. They are needed as long as `processing/` has any name of the batch. */
  private isLeftResults(prefix: string, ino: number, ageMs: number): boolean {
    const { storage, outbox, failed } = this.trays;
    const id = prefix.slice(0, prefix.lastIndexOf("@"));
    // One listing may miss a name that is being renamed; two in a row hardly ever do.
    const isLive = (): boolean => hasLive(this.trays, prefix);
    return isStagedLeftover({
      ageMs,
      hasMarker: isLive() || isLive(),
      isPublished: [outbox, failed].some(
        (dir) => storage.look(pathIn(dir, resultsName(id)))?.ino === ino,
      ),
    });
  }

  private remove(path: string, kind: keyof SweepCounts): void {
    if (this.rules.isDryRun !== true) unlinkIfThere(this.trays, path);
    this.counts[kind]++;
  }
}

/** The age of a file in `outbox/` or `failed/`. A file that is kept as it was dropped has its old mtime, so its last rename (ctime) counts too. */
function bornMs(name: string, facts: FileFacts): number {
  return name.includes("~") ? Math.max(facts.mtimeMs, facts.ctimeMs) : facts.mtimeMs;
}

/**
 * The time that a file created now would get. Our own clock cannot be used for the age of a file: it may have been changed, or the
 * file system may be on another machine.
 */
function fileTimeMs(trays: Trays): number {
  const { storage, tmp } = trays;
  const path = pathIn(tmp, `now-${randomToken(8)}`);
  try {
    storage.create(path, Buffer.alloc(0));
  } catch (error) {
    const code = systemCode(error);
    if (code !== "ENOSPC" && code !== "EDQUOT") throw error;
    // A sweep must also work on a full disk. Touching an existing file sets its ctime, too, and needs no space.
    storage.touch(tmp, storage.look(tmp)?.mtimeMs ?? LONG_AGO_MS);
    return storage.look(tmp)?.ctimeMs ?? LONG_AGO_MS;
  }
  const facts = storage.look(path);
  unlinkIfThere(trays, path);
  return facts?.mtimeMs ?? LONG_AGO_MS;
}

/**
 * Runs a whole pass at once, for a caller that does not know which tasks wait. The inbox is read only when a result is about to
 * be removed.
 */
export function sweepAll(trays: Trays, rules: CleanRules): SweepCounts & { nowMs: number } {
  const sweep = new Sweep(trays, { isNeeded: neededResults(trays), ...rules });
  while (!sweep.next(1024));
  const { counts, nowMs } = sweep;
  for (const folder of sweep.folders) {
    const removal = removeTree(folder);
    let step: IteratorResult<undefined, boolean> | undefined;
    while (rules.isDryRun !== true && step?.done !== true) step = removal.next();
    if (step?.value !== false) counts.errors++;
  }
  return { ...counts, nowMs };
}
