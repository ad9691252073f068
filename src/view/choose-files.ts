/**
 * Chooses the files of a tray that a list shows, from names and times alone. The cost is bounded however many files there are.
 *
 * Waiting tasks come oldest first, ended tasks latest first, by the times of their files. When a tray has more names than may be
 * looked at, ended tasks come in the order of the journal, last first. For waiting tasks, and when the journal names too few, the
 * files are chosen among the names that were looked at.
 */
import { join } from "node:path";
import { errorName, isId, readInboxName, resultName } from "../core/names.ts";
import type { StateTree } from "../core/state-tree.ts";
import { searchBack } from "../journal/read-back.ts";
import { type Found, lookAt, namesIn } from "./scan.ts";

/** Names with another prefix cost little; still at most this many are looked at. */
const NAMES_MAX = 1_000_000;
/** How many names are looked at in one step. */
const STEP_NAMES = 512;
/** How many pieces of the journal are searched (1 ms each). */
const PIECES_MAX = 16;
/** In a cursor: the journal has been searched as far as allowed. */
const SEARCHED = "-";

export type TrayState = "waiting" | "failed" | "done";

interface Tray {
  name: string;
  /** 1: oldest first, -1: latest first. */
  direction: 1 | -1;
  /** The ending of a name after its id; left out for the inbox, which has several. */
  ending?: string;
  /** Texts in the journal's lines about tasks that came into this tray. */
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

/** The id of the task with this name in a tray; undefined for a name that is not listed. */
export function taskIn({ ending }: Tray, name: string): string | undefined {
  if (ending !== undefined)
    return name.endsWith(ending) ? name.slice(0, -ending.length) : undefined;
  const meaning = readInboxName(name);
  return meaning.kind === "task" ? meaning.id : undefined;
}

export interface Wanted {
  /** The largest number of files to choose. */
  limit: number;
  /** `next` of the choice before. */
  after?: string | undefined;
  /** Only ids with this prefix. */
  idPrefix?: string | undefined;
  /** The latest first, also for waiting tasks. */
  isLatestFirst?: boolean;
  /** How many matching names are looked at: 1 µs each, 4 µs with its time. */
  lookedAtMax: number;
}

export interface ChosenFiles {
  files: ChosenFile[];
  /** Where the next choice begins; undefined when there is none. */
  next: string | undefined;
  /** False for a tray with more names than were looked at: some files may be in no choice, and a task that ended twice may be in two. */
  isAll: boolean;
  /** How many names match; when `isAll` is false, more names match than these. */
  count: number;
}

export interface ChosenFile extends Found {
  id: string;
}

/** Yields after each small step, so that other work can run. */
export function* chooseFiles(
  tree: StateTree,
  state: TrayState,
  { limit, after, idPrefix = "", lookedAtMax, isLatestFirst }: Wanted,
): Generator<void, ChosenFiles> {
  const tray = isLatestFirst === true ? { ...TRAYS[state], direction: -1 as const } : TRAYS[state];
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
      return {
        files: [...files.values()],
        next: cursorText(file, searched),
        isAll,
        count: ids.size,
      };
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
    count: ids.size,
  };
}

/** The whole choice, while nothing else runs. */
export function chosenNow(choosing: Generator<void, ChosenFiles>): ChosenFiles {
  let step = choosing.next();
  while (step.done !== true) step = choosing.next();
  return step.value;
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
