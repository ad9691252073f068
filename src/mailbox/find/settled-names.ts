/**
 * Answers which names are in the trays of settled tasks, for callers that ask about very many. It uses a listing as long as the
 * directory cannot have changed since, and otherwise looks at each name.
 */
import type { Tray, Trays } from "../files/trays.ts";
import { pathIn } from "../files/trays.ts";

type SettledTray = Extract<Tray, "outbox" | "failed">;

interface Listing {
  dir: string;
  names: ReadonlySet<string>;
  ino: number;
  mtimeMs: number;
  ctimeMs: number;
  /** Whether the directory was unchanged at the last `refresh`. */
  isCurrent: boolean;
  /** How many single looks there were since the listing. */
  lookCount: number;
}

/** A directory larger than this is not listed (bytes of the directory itself; some ten thousand names). */
const DIR_BYTES_MAX = 1024 * 1024;

export class SettledNames {
  private readonly listings: Record<SettledTray, Listing>;
  /** A time that the file system's own clock has reached (epoch ms). */
  private reachedMs = Number.NEGATIVE_INFINITY;

  /** @param dirBytesMax a larger directory is not listed */
  constructor(
    private readonly trays: Trays,
    private readonly dirBytesMax = DIR_BYTES_MAX,
  ) {
    this.listings = { outbox: unlisted(trays.outbox), failed: unlisted(trays.failed) };
  }

  has(tray: SettledTray, name: string): boolean {
    const listing = this.listings[tray];
    if (listing.isCurrent) return listing.names.has(name);
    listing.lookCount++;
    return this.trays.storage.look(pathIn(listing.dir, name)) !== undefined;
  }

  /** Reads the file system's clock from a file that was just made or moved. Only that clock counts, because it also dates the directories. */
  noteNew(path: string): void {
    const facts = this.trays.storage.look(path);
    if (facts !== undefined) this.reachedMs = facts.ctimeMs;
  }

  /**
   * Checks whether the listings are still valid.
   * @param mayList whether to list again where that pays: after as many single looks since the last listing as it had names
   */
  refresh(mayList: boolean): void {
    for (const listing of Object.values(this.listings)) this.refreshOne(listing, mayList);
  }

  private refreshOne(listing: Listing, mayList: boolean): void {
    const facts = this.trays.storage.look(listing.dir);
    listing.isCurrent =
      facts !== undefined &&
      facts.ino === listing.ino &&
      facts.mtimeMs === listing.mtimeMs &&
      facts.ctimeMs === listing.ctimeMs;
    if (listing.isCurrent || !mayList || facts === undefined) return;
    // Names that appear within one tick of that clock leave the same date, so the listing proves nothing until the clock has moved
    // on.
    const isDated = this.reachedMs > facts.mtimeMs && this.reachedMs > facts.ctimeMs;
    const doesPay = listing.lookCount > 0 && listing.lookCount >= listing.names.size;
    if (!isDated || !doesPay || facts.size > this.dirBytesMax) return;
    const { ino, mtimeMs, ctimeMs } = facts;
    const names = new Set(this.trays.storage.list(listing.dir));
    Object.assign(listing, { names, ino, mtimeMs, ctimeMs, isCurrent: true, lookCount: 0 });
  }
}

function unlisted(dir: string): Listing {
  const never = { ino: Number.NaN, mtimeMs: Number.NaN, ctimeMs: Number.NaN };
  return { dir, names: new Set(), ...never, isCurrent: false, lookCount: 0 };
}
