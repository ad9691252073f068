/**
 * Chooses which files of a tray a list shows, by names and times alone, at a bounded cost however many there are.
 *
 * What waits comes oldest first, what has ended latest first. The times of a bounded number of files are looked at. In a larger
 * tray those are some of them, as chance has it; and of settled tasks, besides, those that the journal names last: so the latest
 * are found however large the tray is. The next choice goes on in the journal where this one ended.
 */
import fs from "node:fs";
import { join } from "node:path";
import { errorName, isId, readInboxName, resultName } from "../core/names.ts";
import type { StateTree } from "../core/state-tree.ts";
import { linesWith, placeIn, readBack } from "../journal/read-back.ts";
import { type Found, namesIn } from "./scan.ts";

/** Names that do not begin as asked are passed over; of them, too, no more than so many are looked at. */
const NAMES_MAX = 1_000_000;
/** Between two steps at most so many names are looked at. */
const STEP_NAMES = 512;
/** So many pieces of the journal are read (1 ms each). */
const PIECES_MAX = 16;
/** In a cursor: nothing is left in the journal, or it names too few to go on in it. */
const NO_PLACE = "-";

interface Tray {
  name: "inbox" | "failed" | "outbox";
  order: "oldest" | "latest";
  /** Undefined for a name that is not listed. */
  idOf: (name: string) => string | undefined;
  /** What the journal's lines contain of those that came into this tray. */
  marks: readonly string[];
  nameOf: (id: string) => string;
}

export type TrayState = "waiting" | "failed" | "done";

const TRAYS: Readonly<Record<TrayState, Tray>> = {
  waiting: {
    name: "inbox",
    order: "oldest",
    idOf: (name) => {
      const meaning = readInboxName(name);
      return meaning.kind === "task" ? meaning.id : undefined;
    },
    marks: [],
    nameOf: (id) => id,
  },
  failed: {
    name: "failed",
    order: "latest",
    idOf: (name) => before("_error.json", name),
    marks: ['"failed"', '"quarantined"'],
    nameOf: errorName,
  },
  done: {
    name: "outbox",
    order: "latest",
    idOf: (name) => before("_result.json", name),
    marks: ['"completed"'],
    nameOf: resultName,
  },
};

function before(ending: string, name: string): string | undefined {
  return name.endsWith(ending) ? name.slice(0, -ending.length) : undefined;
}

export interface Wanted {
  /** At most so many are chosen. */
  limit: number;
  /** `next` of the choice before. */
  after?: string | undefined;
  /** Only ids that begin so. */
  idPrefix?: string | undefined;
  /** The times of so many files are looked at (some 3 µs each). */
  lookedAtMax: number;
}

export interface Choice {
  files: (Found & { id: string })[];
  /** Where the next choice begins; undefined: there is none. */
  next: string | undefined;
  /** False for a tray that holds more than was looked at: some files may be in no choice. */
  isAll: boolean;
}

interface Candidate extends Found {
  id: string;
  /** Which piece of the journal names it. */
  piece?: number;
}

/** Yields after each small step, so that others can have their turn. */
export function* chooseFiles(
  tree: StateTree,
  state: TrayState,
  wanted: Wanted,
): Generator<void, Choice> {
  const tray = TRAYS[state];
  const start = readCursor(wanted.after, tray.order);
  const found = new Candidates(join(tree.mailbox, tray.name), tray, start, wanted);
  const isAll = yield* found.addListed(wanted.lookedAtMax);
  const { ends, place } =
    isAll || start.place === NO_PLACE
      ? { ends: [], place: NO_PLACE }
      : yield* found.addNamed(tree.events, start.place || undefined, wanted.limit);
  const sorted = found.sorted();
  const files = sorted.slice(0, wanted.limit);
  const left = sorted.slice(wanted.limit);
  const hasNext = left.length > 0 || place !== NO_PLACE;
  // What is left over of the journal's pieces is read again.
  const again = left.reduce(
    (least, { piece = ends.length }) => Math.min(least, piece),
    ends.length,
  );
  const next = cursorText(files.at(-1) ?? start, ends[again] ?? place);
  return { files, next: hasNext ? next : undefined, isAll };
}

/** Files of one tray that stand behind a cursor. */
class Candidates {
  private readonly dir: string;
  private readonly tray: Tray;
  private readonly start: Key;
  private readonly idPrefix: string;
  private readonly byName = new Map<string, Candidate>();

  constructor(dir: string, tray: Tray, start: Key, { idPrefix = "" }: Wanted) {
    this.dir = dir;
    this.tray = tray;
    this.start = start;
    this.idPrefix = idPrefix;
  }

  /** @returns whether all names have been seen */
  *addListed(lookedAtMax: number): Generator<void, boolean> {
    let seen = 0;
    let lookedAt = 0;
    for (const name of namesIn(this.dir)) {
      const id = this.tray.idOf(name);
      if (id?.startsWith(this.idPrefix) === true) {
        this.add(name, id);
        lookedAt++;
      }
      if (++seen % STEP_NAMES === 0) yield;
      if (lookedAt >= lookedAtMax || seen >= NAMES_MAX) return false;
    }
    return true;
  }

  /**
   * Those that the journal names, the latest first.
   * @returns where its pieces end, and where a later choice can go on when it has shown them all
   */
  *addNamed(
    journal: string,
    from: string | undefined,
    limit: number,
  ): Generator<void, { ends: string[]; place: string }> {
    const { marks, nameOf } = this.tray;
    const ends: string[] = [];
    let count = 0;
    for (const piece of marks.length === 0 ? [] : readBack(journal, from)) {
      // One piece more than is needed: processes write their lines some moments after their records.
      const isLast = count >= limit;
      for (const id of idsNamed(piece.bytes, marks)) {
        if (!id.startsWith(this.idPrefix)) continue;
        const name = nameOf(id);
        const file = this.byName.get(name) ?? this.add(name, id);
        if (file === undefined || file.piece !== undefined) continue;
        file.piece = ends.length;
        count++;
      }
      ends.push(placeIn(piece, piece.bytes.length));
      yield;
      if (isLast) return { ends, place: placeIn(piece) };
      if (ends.length >= PIECES_MAX) break;
    }
    return { ends, place: NO_PLACE };
  }

  sorted(): Candidate[] {
    return [...this.byName.values()].sort((a, b) => byKey(this.tray.order, a, b));
  }

  private add(name: string, id: string): Candidate | undefined {
    const path = join(this.dir, name);
    const stats = fs.lstatSync(path, { throwIfNoEntry: false });
    if (stats === undefined) return undefined;
    const file = { id, name, path, mtimeMs: stats.mtimeMs, size: stats.size };
    if (byKey(this.tray.order, this.start, file) >= 0) return undefined;
    this.byName.set(name, file);
    return file;
  }
}

/** Ids in the lines that contain one of these texts, the last line first. */
function* idsNamed(bytes: Buffer, marks: readonly string[]): Generator<string> {
  for (const mark of marks) {
    for (const { line } of linesWith(bytes, mark)) {
      const id = /"task_id":"([^"\\/]+)"/.exec(line)?.[1];
      if (id !== undefined && isId(id)) yield id;
    }
  }
}

type Key = Pick<Found, "mtimeMs" | "name">;

function byKey(order: Tray["order"], a: Key, b: Key): number {
  const byTime = order === "oldest" ? a.mtimeMs - b.mtimeMs : b.mtimeMs - a.mtimeMs;
  return byTime || (a.name < b.name ? -1 : Number(a.name > b.name));
}

function cursorText({ mtimeMs, name }: Key, place: string): string {
  return `${mtimeMs}:${place}:${name}`;
}

function readCursor(text: string | undefined, order: Tray["order"]): Key & { place: string } {
  const first = order === "oldest" ? Number.NEGATIVE_INFINITY : Number.POSITIVE_INFINITY;
  if (text === undefined) return { mtimeMs: first, name: "", place: "" };
  const [mtimeMs = "", place = "", ...name] = text.split(":");
  return { mtimeMs: Number(mtimeMs), place, name: name.join(":") };
}
