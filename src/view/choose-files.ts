/**
 * Chooses which files of a tray a list shows, by names and times alone, at a bounded cost however many there are.
 *
 * What waits comes oldest first, what has ended latest first, by the times of the files. In a tray with more names than may be
 * looked at, what has ended comes as the journal names it, last first. Where that names too few, as well as of what waits, the
 * choice is made among the names that were looked at: some, as chance has it.
 */
import { join } from "node:path";
import { errorName, isId, readInboxName, resultName } from "../core/names.ts";
import type { StateTree } from "../core/state-tree.ts";
import { searchBack } from "../journal/read-back.ts";
import { type Found, lookAt, namesIn } from "./scan.ts";

/** Names that do not begin as asked cost little; of them, too, no more than so many are looked at. */
const NAMES_MAX = 1_000_000;
/** Between two steps at most so many names are looked at. */
const STEP_NAMES = 512;
/** So many pieces of the journal are searched (1 ms each). */
const PIECES_MAX = 16;
/** In a cursor: the journal has been searched as far as it may be. */
const SEARCHED = "-";

export type TrayState = "waiting" | "failed" | "done";

interface Tray {
  name: string;
  /** Times grow with it, or fall. */
  direction: 1 | -1;
  /** Of names behind their ids; in the inbox there are several. */
  ending?: string;
  /** What the journal's lines contain of tasks that came into this tray. */
  marks: readonly string[];
}

export const TRAYS: Readonly<Record<TrayState, Tray>> = {
  waiting: { name: "inbox", direction: 1, marks: [] },
  failed: {
    name: "failed",
    direction: -1,
    ending: errorName(""),
    marks: ['"failed"', '"quarantined"'],
  },
  done: { name: "outbox", direction: -1, ending: resultName(""), marks: ['"completed"'] },
};

/** The task that this name in a tray stands for; undefined for a name that is not listed. */
export function taskIn({ ending }: Tray, name: string): string | undefined {
  if (ending !== undefined)
    return name.endsWith(ending) ? name.slice(0, -ending.length) : undefined;
  const meaning = readInboxName(name);
  return meaning.kind === "task" ? meaning.id : undefined;
}

export interface Wanted {
  /** At most so many are chosen. */
  limit: number;
  /** `next` of the choice before. */
  after?: string | undefined;
  /** Only ids that begin so. */
  idPrefix?: string | undefined;
  /** So many names that fit are looked at: 1 µs each, 4 µs with its time. */
  lookedAtMax: number;
}

export interface Choice {
  files: ChosenFile[];
  /** Where the next choice begins; undefined: there is none. */
  next: string | undefined;
  /** False for a tray with more names than were looked at: some files may be in no choice, and one that ended twice in two. */
  isAll: boolean;
}

export interface ChosenFile extends Found {
  id: string;
}

/** Yields after each small step, so that others can have their turn. */
export function* chooseFiles(
  tree: StateTree,
  state: TrayState,
  { limit, after, idPrefix = "", lookedAtMax }: Wanted,
): Generator<void, Choice> {
  const tray = TRAYS[state];
  const dir = join(tree.mailbox, tray.name);
  const ids = new Map<string, string>();
  let isAll = true;
  let seen = 0;
  for (const name of namesIn(dir)) {
    const id = taskIn(tray, name);
    if (id?.startsWith(idPrefix) === true) ids.set(name, id);
    if (++seen % STEP_NAMES === 0) yield;
    isAll = ids.size < lookedAtMax && seen < NAMES_MAX;
    if (!isAll) break;
  }
  const start = readCursor(after, tray);
  const files = new Map<string, ChosenFile>();
  let pieces = 0;
  const isSearched = isAll || tray.marks.length === 0 || start.place === SEARCHED;
  const lines = isSearched ? [] : searchBack(tree.events, tray.marks, start.place || undefined);
  for (const { line, place: searched } of lines) {
    if (line === undefined) yield;
    if (line === undefined && ++pieces === PIECES_MAX) break;
    const file = fileNamed(line, dir, tray);
    if (file?.id.startsWith(idPrefix) !== true || files.has(file.name)) continue;
    files.set(file.name, file);
    if (files.size === limit)
      return { files: [...files.values()], next: cursorText(file, searched), isAll };
  }
  const rest: ChosenFile[] = [];
  for (const [name, id] of ids) {
    const file = files.has(name) ? undefined : lookAt(dir, name);
    if (file !== undefined && compare(tray, start, file) < 0) rest.push({ ...file, id });
    if (++seen % STEP_NAMES === 0) yield;
  }
  const inOrder = (a: ChosenFile, b: ChosenFile): number => compare(tray, a, b);
  const more = rest.sort(inOrder).slice(0, limit - files.size);
  return {
    files: [...files.values(), ...more].sort(inOrder),
    next: more.length < rest.length ? cursorText(more.at(-1) ?? start, SEARCHED) : undefined,
    isAll,
  };
}

/** The file of the task that a line of the journal names, if it is in the tray now. */
function fileNamed(line: string | undefined, dir: string, tray: Tray): ChosenFile | undefined {
  const id = /"task_id":"([^"\\/]+)"/.exec(line ?? "")?.[1];
  if (id === undefined || !isId(id)) return undefined;
  const file = lookAt(dir, `${id}${tray.ending ?? ""}`);
  return file && { ...file, id };
}

type Key = Pick<Found, "mtimeMs" | "name">;

function compare({ direction }: Tray, a: Key, b: Key): number {
  return direction * (a.mtimeMs - b.mtimeMs) || (a.name < b.name ? -1 : Number(a.name > b.name));
}

function cursorText({ mtimeMs, name }: Key, place: string): string {
  return `${mtimeMs}:${place}:${name}`;
}

function readCursor(text: string | undefined, { direction }: Tray): Key & { place: string } {
  if (text === undefined)
    return { mtimeMs: direction * Number.NEGATIVE_INFINITY, name: "", place: "" };
  const [mtimeMs, place = "", ...name] = text.split(":");
  return { mtimeMs: Number(mtimeMs), place, name: name.join(":") };
}
