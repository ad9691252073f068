/**
 * Remembers in `roadmap.resets.json` which nodes resets have opened. A reset is noted before the plan changes. So a supervisor does
 * not take the plan with the opened nodes for an old copy, and a reset that is repeated after a crash opens no node twice.
 */
import { join } from "node:path";
import { isObject } from "../../core/json-object.ts";
import { foldId } from "../../core/names.ts";
import { readDocument, replaceDocument } from "../../host/documents.ts";
import { statOf } from "../../host/regular-file.ts";

export interface ResetNote {
  /** A reset that is repeated after a crash has the same key. */
  key: string;
  /** Epoch ms. */
  at_ms: number;
  ids: readonly string[];
}

/** How long a reset may be repeated after a crash (ms). */
const KEPT_MS = 24 * 3_600_000;
/** The kept notes of older resets name at most this many nodes in all. */
const IDS_MAX = 100_000;

export function resetsFileOf(stateDir: string): string {
  return join(stateDir, "roadmap.resets.json");
}

/** The newest last. Empty when the document is missing or broken. */
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

/** Says when a reset last opened a node. Reads the document again after it has changed. */
export class OpenedByReset {
  private stamp = "";
  private readonly atMs = new Map<string, number>();

  constructor(private readonly stateDir: string) {}

  /** Epoch ms; undefined when no reset has opened the node. */
  of(id: string): number | undefined {
    const stats = statOf(resetsFileOf(this.stateDir));
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
