/** Reads new lines of the journals of events and alerts. It begins at a saved place, so a restart loses no line. */
import { parseObject } from "../../core/json-object.ts";
import type { StateTree } from "../../core/state-tree.ts";
import { statOf } from "../../host/regular-file.ts";
import { rotatedOf } from "../../journal/rotated.ts";
import { JournalTail } from "../../journal/tail.ts";
import type { Place, Places } from "./notify-state.ts";
import { mayBeNews, type News, newsOfAlert, newsOfEvent } from "./topics.ts";

/** A look reads at most this many pieces of a megabyte. So a flood is reported a moment later, and does not delay other work. */
const PIECES_MAX = 4;

export class JournalNews {
  private readonly events: Follower;
  private readonly alerts: Follower;

  constructor(tree: Pick<StateTree, "events" | "alerts">, from: Places) {
    this.events = new Follower(tree.events, from.events);
    this.alerts = new Follower(tree.alerts, from.alerts);
  }

  get places(): Places {
    return { events: this.events.place, alerts: this.alerts.place };
  }

  /** @throws a system error when a journal cannot be read */
  read(): News[] {
    const events = this.events.read(mayBeNews).map(newsOfEvent);
    const alerts = this.alerts.read(() => true).map(newsOfAlert);
    return [...events, ...alerts].filter((news) => news !== undefined);
  }

  close(): void {
    this.events.close();
    this.alerts.close();
  }
}

class Follower {
  /** The files to read in order. The first one may be a file that was rotated while no supervisor ran. */
  private readonly tails: JournalTail[];

  constructor(path: string, place: Place) {
    const isThere = place.ino === 0 || place.ino === inoOf(path);
    const old = isThere ? undefined : rotatedOf(path).find((one) => inoOf(one) === place.ino);
    this.tails =
      old === undefined
        ? [new JournalTail(path, place.offset, place.ino)]
        : [new JournalTail(old, place.offset, place.ino), new JournalTail(path)];
  }

  get place(): Place {
    const { ino = 0, offset = 0 } = this.tails[0] ?? {};
    return { ino, offset };
  }

  read(isWanted: (line: string) => boolean): Record<string, unknown>[] {
    const records: Record<string, unknown>[] = [];
    for (let piece = 0; piece < PIECES_MAX; piece++) {
      const lines = this.tails[0]?.nextLines() ?? [];
      for (const line of lines) {
        const record = isWanted(line) ? parseObject(line) : undefined;
        if (record !== undefined) records.push(record);
      }
      if (lines.length > 0) continue;
      if (this.tails.length === 1) break;
      this.tails.shift()?.close();
    }
    return records;
  }

  close(): void {
    for (const tail of this.tails) tail.close();
  }
}

function inoOf(path: string): number | undefined {
  return statOf(path)?.ino;
}
