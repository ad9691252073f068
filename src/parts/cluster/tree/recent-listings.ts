/**
 * Listings of `processing/`, by id. One listing answers all questions of a moment, so an answer may be a moment old. With thousands
 * of tasks, one listing for each question would take longer than the tasks.
 */
import type { Trays } from "../../../mailbox/files/trays.ts";

/** A listing is used for this long (ms). */
const MOMENT_MS = 50;

interface Listing {
  atMs: number;
  names: ReadonlyMap<string, readonly string[]>;
}

export class RecentListings {
  private last: Listing | undefined;
  private before: Listing | undefined;

  constructor(private readonly trays: Pick<Trays, "storage" | "processing" | "clock">) {}

  /** The names of this id. @throws a system error when the tray cannot be listed */
  of(id: string): readonly string[] {
    const last = this.isRecent(this.last, MOMENT_MS) ? this.last : this.take();
    return last.names.get(id) ?? [];
  }

  /** The same from another listing. One listing may miss a name that is being renamed; two hardly ever do. */
  ofAnother(id: string): readonly string[] {
    const other = this.isRecent(this.before, 2 * MOMENT_MS) ? this.before : this.take();
    return other.names.get(id) ?? [];
  }

  /** After this the next answer comes from a new listing. */
  forget(): void {
    this.before = this.last;
    this.last = undefined;
  }

  private isRecent(listing: Listing | undefined, ms: number): listing is Listing {
    return listing !== undefined && this.trays.clock.monotonicMs() - listing.atMs <= ms;
  }

  private take(): Listing {
    const { storage, processing, clock } = this.trays;
    const atMs = clock.monotonicMs();
    const names = new Map<string, string[]>();
    for (const file of storage.list(processing)) {
      const end = file.indexOf("@");
      if (end <= 0) continue;
      const id = file.slice(0, end);
      const known = names.get(id);
      if (known === undefined) names.set(id, [file]);
      else known.push(file);
    }
    this.before = this.last;
    this.last = { atMs, names };
    return this.last;
  }
}
