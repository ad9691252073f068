/**
 * Remembers what resets have opened, in `roadmap.resets.json`. A reset is noted before the plan changes: so a supervisor does not take
 * the plan with its open nodes for an old copy, and a run of a reset that is repeated after a crash opens nothing twice.
 */
import fs from "node:fs";
import { join } from "node:path";
import { isObject } from "../../core/json-object.ts";
import { foldId } from "../../core/names.ts";
import { readDocument, replaceDocument } from "../../host/documents.ts";

export interface ResetNote {
  /** A run of a reset that is repeated has the same key. */
  key: string;
  /** Epoch ms. */
  at_ms: number;
  ids: readonly string[];
}

/** A run of a reset may be repeated for as long (ms). */
const KEPT_MS = 24 * 3_600_000;
/** Of older resets no more are kept than name so many nodes together. */
const IDS_MAX = 100_000;

export function resetsFileOf(stateDir: string): string {
  return join(stateDir, "roadmap.resets.json");
}

/** The newest last. None when the document is missing or broken. */
export function readResets(stateDir: string): ResetNote[] {
  const resets = readDocument<{ resets?: unknown }>(resetsFileOf(stateDir))?.resets;
  return Array.isArray(resets) ? resets.filter(isNote) : [];
}

function isNote(value: unknown): value is ResetNote {
  if (!isObject(value) || typeof value["key"] !== "string") return false;
  const { at_ms: atMs, ids } = value;
  return Number.isFinite(atMs) && Array.isArray(ids) && ids.every((one) => typeof one === "string");
}

/** @throws a system error */
export function noteReset(stateDir: string, note: ResetNote, isDurable: boolean): void {
  let room = IDS_MAX;
  const earlier = readResets(stateDir).filter(
    ({ key, at_ms: atMs }) => key !== note.key && Math.abs(note.at_ms - atMs) < KEPT_MS,
  );
  const kept = earlier.reverse().filter(({ ids }) => {
    room -= ids.length + 1;
    return room > 0;
  });
  const resets = [...kept.reverse(), note];
  replaceDocument(resetsFileOf(stateDir), { resets }, { isDurable });
}

/** Says when a node was last opened by a reset. It reads the document again when that has changed. */
export class OpenedByReset {
  private readonly stateDir: string;
  private stamp = "";
  private readonly atMs = new Map<string, number>();

  constructor(stateDir: string) {
    this.stateDir = stateDir;
  }

  /** Epoch ms; undefined when no reset has opened it. */
  of(id: string): number | undefined {
    const stats = fs.statSync(resetsFileOf(this.stateDir), { throwIfNoEntry: false });
    const stamp = stats === undefined ? "" : `${stats.ino} ${stats.mtimeMs} ${stats.size}`;
    if (stamp !== this.stamp) {
      this.stamp = stamp;
      this.atMs.clear();
      for (const { ids, at_ms: atMs } of readResets(this.stateDir))
        for (const one of ids) this.atMs.set(foldId(one), atMs);
    }
    return this.atMs.get(foldId(id));
  }
}
