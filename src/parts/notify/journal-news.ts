/** Reads new lines of the journals of events and alerts. It begins at a saved place, so a restart loses no line. */
import { isObject, parseObject } from "../../core/json-object.ts";
import type { StateTree } from "../../core/state-tree.ts";
import { JournalTail } from "../../journal/tail.ts";
import type { Place, Places } from "./notify-state.ts";
import { mayBeNews, type News, newsOfAlert, newsOfEvent } from "./topics.ts";

/** A look reads at most this many pieces of a megabyte. So a flood is reported a moment later, and does not delay other work. */
const PIECES_MAX = 4;

export class JournalNews {
  private readonly events: JournalTail;
  private readonly alerts: JournalTail;

  constructor(tree: Pick<StateTree, "events" | "alerts">, from: Places) {
    this.events = new JournalTail(tree.events, from.events.offset, from.events.ino);
    this.alerts = new JournalTail(tree.alerts, from.alerts.offset, from.alerts.ino);
  }

  get places(): Places {
    return { events: placeOf(this.events), alerts: placeOf(this.alerts) };
  }

  /** @param isEnd the pool ends, so no process writes any more @throws a system error when a journal cannot be read */
  read(isEnd = false): News[] {
    const events = readNews(this.events, mayBeNews, isEnd).map(newsOfEvent);
    const alerts = readNews(this.alerts, () => true, isEnd).map(newsOfAlert);
    return [...events, ...alerts].filter((news) => news !== undefined);
  }

  close(): void {
    this.events.close();
    this.alerts.close();
  }
}

function readNews(
  tail: JournalTail,
  isWanted: (line: string) => boolean,
  isEnd: boolean,
): Record<string, unknown>[] {
  const records: Record<string, unknown>[] = [];
  for (let piece = 0; piece < PIECES_MAX; piece++) {
    const lines = isEnd ? tail.nextLines(undefined, 0) : tail.nextLines();
    if (lines.length === 0) break;
    records.push(...lines.filter(isWanted).map(parseObject).filter(isObject));
  }
  return records;
}

const placeOf = ({ ino, offset }: JournalTail): Place => ({ ino, offset });
