/**
 * Remembers in `roadmap.resets.json` which nodes resets have opened. A reset is noted before the plan changes. So a supervisor does
 * not take the plan with the opened nodes for an old copy, and a reset that is repeated after a crash opens no node twice.
 */

import { foldId } from "../../core/names.ts";
import { goodOf, having, isNumber, isText, listOf, type Of, shape } from "../../core/shape.ts";
import { Documents } from "../../host/document-store.ts";
import { statOf } from "../../host/regular-file.ts";

const isNote = having({
  /** A reset that is repeated after a crash has the same key. */
  key: isText,
  at_ms: isNumber,
  ids: listOf(isText),
});
/** Times are epoch ms. */
export type ResetNote = Of<typeof isNote>;
const noted = shape({ resets: goodOf(isNote) });
const NAME = "roadmap.resets";
const documents = (stateDir: string, isDurable = false): Documents<Of<typeof noted>> =>
  new Documents(stateDir, "", noted, { isDurable });

/** How long a reset may be repeated after a crash (ms). */
const KEPT_MS = 24 * 3_600_000;
/** The kept notes of older resets name at most this many nodes in all. */
const IDS_MAX = 100_000;

/** The newest last. Empty when the document is missing or broken. */
export const readResets = (stateDir: string): ResetNote[] =>
  documents(stateDir).read(NAME)?.resets ?? [];

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
  documents(stateDir, isDurable).replace(NAME, { resets });
}

/** Says when a reset last opened a node. Reads the document again after it has changed. */
export class OpenedByReset {
  private stamp = "";
  private readonly atMs = new Map<string, number>();

  constructor(private readonly stateDir: string) {}

  /** Epoch ms; undefined when no reset has opened the node. */
  of(id: string): number | undefined {
    const stats = statOf(documents(this.stateDir).path(NAME));
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
