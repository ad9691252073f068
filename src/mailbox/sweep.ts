/** Sweep: retention of settled records and staged leftovers. Never touches what recovery may still need. */
import { systemCode } from "../core/errors.ts";
import {
  besideId,
  errorName,
  parseName,
  parseSettledName,
  parseStagedResults,
  resultName,
  resultsName,
} from "../core/names.ts";
import { isExpired, isStagedLeftover } from "../core/retention.ts";
import { removeTree } from "../host/remove-tree.ts";
import { commandOfNote } from "./command-subject.ts";
import { hasLive } from "./locate.ts";
import { neededResults } from "./needed-results.ts";
import { randomToken } from "./random.ts";
import { unlinkIfThere } from "./steps.ts";
import type { FileFacts, Walk } from "./storage.ts";
import { pathIn, type Trays } from "./trays.ts";

export interface CleanRules {
  outboxDays: number;
  failedDays: number;
  isDryRun?: boolean;
  /** Gets what the disk says when one file cannot be looked at or removed: the others go. */
  onError?: (error: unknown) => void;
  /** Results that waiting tasks depend on stay: after a restart nothing else tells that a dependency is met. */
  isNeeded?: (id: string) => boolean;
}

export interface SweepCounts {
  results: number;
  errors: number;
  staged: number;
}

const LONG_AGO_MS = 0;

/** One pass over outbox, failed and .tmp that can be taken in slices. */
export class Sweep {
  readonly counts: SweepCounts = { results: 0, errors: 0, staged: 0 };
  /** Old folders that were refused, for the caller to remove: that may take long. */
  readonly folders: string[] = [];
  private readonly trays: Trays;
  private readonly rules: CleanRules;
  private readonly todo: ("outbox" | "failed" | "tmp")[] = ["outbox", "failed", "tmp"];
  private walk: Walk | undefined;
  private now: number | undefined;

  constructor(trays: Trays, rules: CleanRules) {
    this.trays = trays;
    this.rules = rules;
  }

  /** Now, as the file system that is swept would stamp it: ages are reckoned from here (epoch ms). A dry run takes our clock. */
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
      this.walk ??= this.trays.storage.walk(this.trays[tray]);
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

  /** One that cannot be removed, as a file of another user in a sticky directory, stays; the others go. */
  private tryLook(tray: "outbox" | "failed" | "tmp", name: string): void {
    const { onError } = this.rules;
    try {
      this.look(tray, name);
    } catch (error) {
      if (onError === undefined) throw error;
      onError(error);
    }
  }

  private look(tray: "outbox" | "failed" | "tmp", name: string): void {
    const path = pathIn(this.trays[tray], name);
    const facts = this.trays.storage.look(path);
    if (facts === undefined) return;
    if (facts.kind === "directory") {
      if (tray === "failed" && this.isOldFailure(name, this.nowMs - bornMs(name, facts)))
        this.folders.push(path);
      return;
    }
    const ageMs = this.nowMs - (tray === "tmp" ? facts.mtimeMs : bornMs(name, facts));
    if (tray === "tmp") {
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
      this.remove(path, "errors");
    }
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

  /** Results of a batch are needed as long as any name of it stands in `processing/`. */
  private isLeftResults(prefix: string, ino: number, ageMs: number): boolean {
    const { storage, outbox, failed } = this.trays;
    const id = prefix.slice(0, prefix.lastIndexOf("@"));
    // One listing may miss a name that is being renamed; two in a row hardly do.
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

/** In `outbox/` and `failed/`: a file that is kept as it was dropped has brought its own times: it has been here since its last rename at the latest. */
function bornMs(name: string, facts: FileFacts): number {
  return name.includes("~") ? Math.max(facts.mtimeMs, facts.ctimeMs) : facts.mtimeMs;
}

/**
 * The time that a file gets which is made now. Our own clock says nothing about the age of a file: it may have been moved, or
 * be that of another machine.
 */
function fileTimeMs(trays: Trays): number {
  const { storage, tmp } = trays;
  const path = pathIn(tmp, `now-${randomToken(8)}`);
  try {
    storage.create(path, Buffer.alloc(0));
  } catch (error) {
    const code = systemCode(error);
    if (code !== "ENOSPC" && code !== "EDQUOT") throw error;
    // A full disk is what a sweep is for. Touching what is there is stamped, too, and needs no room.
    storage.touch(tmp, storage.look(tmp)?.mtimeMs ?? LONG_AGO_MS);
    return storage.look(tmp)?.ctimeMs ?? LONG_AGO_MS;
  }
  const facts = storage.look(path);
  unlinkIfThere(trays, path);
  return facts?.mtimeMs ?? LONG_AGO_MS;
}

/** A whole pass at once, for who knows nothing of what waits: that is read when a result is about to go. */
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
