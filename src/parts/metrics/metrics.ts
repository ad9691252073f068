/** Keeps the counts of a state tree in `metrics.json`. The journal also holds the events of earlier runs and of other workers. */
import { readDocument } from "../../host/documents.ts";
import { replaceDocument } from "../../host/replace-document.ts";
import type { EventLine } from "../../journal/event-line.ts";
import type { JournalPlace } from "../../journal/read-on.ts";
import { EventCounts, type MetricsDocument } from "../../view/metrics/event-counts.ts";

export class Metrics {
  private readonly counts: EventCounts;
  private isChanged = true;

  /** Goes on from the counts in `metrics.json`. */
  constructor(private readonly path: string) {
    this.counts = new EventCounts(readDocument<MetricsDocument>(path));
  }

  /** The place in the journal up to which an earlier run has counted. */
  get place(): JournalPlace {
    return this.counts.place;
  }

  add(line: string, event: EventLine["event"], record: EventLine["record"]): void {
    this.isChanged = true;
    this.counts.add(line, event, record);
  }

  /** @param badCount lines since the start that are not records. @throws a system error */
  write(nowWallMs: number, place: JournalPlace, badCount: number): void {
    if (!this.isChanged) return;
    replaceDocument(this.path, this.counts.document(nowWallMs, place, badCount), {
      missingMax: 2,
    });
    this.isChanged = false;
  }
}
