/**
 * Keeps the notes of a list in the state tree: `lists/<name>-<hash>.json`. A note stays when its item is removed from the list. So an
 * item that comes back is not run again.
 */
import { createHash } from "node:crypto";
import fs from "node:fs";
import { basename, join, relative } from "node:path";
import { ErrInvalidList, ErrIo, messageOf } from "../../core/errors.ts";
import { parseObject } from "../../core/json-object.ts";
import {
  having,
  isCount,
  isNumber,
  isText,
  listOf,
  type Of,
  orNull,
  shape,
} from "../../core/shape.ts";
import type { StateTree } from "../../core/state-tree.ts";
import { underLock } from "../../host/file-lock.ts";
import { makeDirs } from "../../host/make-dirs.ts";
import { readRegularText } from "../../host/regular-file.ts";
import { replaceText } from "../../host/replace-document.ts";

/** All times are unix seconds. */
const isNote = having({
  /** The id of its task. */
  id: isText,
  /** Hash of the item's text. */
  key: isText,
  /** Tells items with the same text apart, from 1. */
  number: isCount,
  title: isText,
  /** Hash of the agent's prompt. */
  prompt: isText,
  /** Null: the task is about to be submitted, or a crash came in between. */
  submitted_at: orNull(isNumber),
  landed_at: orNull(isNumber),
  /** The `landed_at` whose tick is being written or was written. */
  ticking: orNull(isNumber),
  /** The `landed_at` whose tick is in the person's file. */
  ticked: orNull(isNumber),
});
export type Note = Of<typeof isNote>;

const listNotes = shape({
  /** Path of the list relative to the state tree, so that both can be moved together. */
  list: isText,
  items: listOf(isNote),
});
export type ListNotes = Of<typeof listNotes>;

/** Characters of a list's name in its ids. */
const STEM_CHARS_MAX = 24;

export class NotesFile {
  readonly path: string;
  /** The prefix of the ids of all its tasks. */
  readonly stem: string;
  private readonly list: string;
  private readonly dir: string;
  private readonly isDurable: boolean;

  /** @param list real path of the list */
  constructor(tree: StateTree, list: string, durability: "power" | "process") {
    this.list = relative(fs.realpathSync(tree.dir), list);
    this.dir = listsDir(tree);
    this.stem = `${stemOf(list)}-`;
    this.path = join(this.dir, `${this.stem}${hashOf(this.list)}.json`);
    this.isDurable = durability === "power";
  }

  /** The notes; empty when the list is new. @throws ErrInvalidList, ErrIo */
  read(): ListNotes {
    return readNotes(this.path) ?? { list: this.list, items: [] };
  }

  /** @throws ErrIo */
  write(notes: ListNotes): void {
    const items = notes.items.map((note) => JSON.stringify(note)).join(",\n");
    const text = `{"list":${JSON.stringify(notes.list)},"items":[\n${items}\n]}\n`;
    try {
      makeDirs(this.dir);
      replaceText(this.path, text, { isDurable: this.isDurable });
    } catch (error) {
      throw new ErrIo(`cannot write the notes of the list: ${messageOf(error)}`, {
        path: this.path,
        phase: "note",
        cause: error,
        hint: "check the disk and the rights of the state tree, and give the command again",
      });
    }
  }

  /** Lets one command at a time work with a list. This only saves work: two commands would give the tasks the same ids. */
  async locked<T>(work: () => Promise<T>): Promise<T> {
    makeDirs(this.dir);
    return underLock(`${this.path}.lock`, work);
  }

  idOf(note: Pick<Note, "key" | "number">): string {
    return `${this.stem}${hashOf(`${this.list}\0${note.key}\0${note.number}`)}`;
  }
}

/** Real paths of all lists of this tree. @throws ErrInvalidList, ErrIo */
export function knownLists(tree: StateTree): string[] {
  const dir = listsDir(tree);
  if (!fs.existsSync(dir)) return [];
  const names = fs.readdirSync(dir).filter((name) => name.endsWith(".json"));
  const from = fs.realpathSync(tree.dir);
  return names.sort().flatMap((name) => {
    const list = readNotes(join(dir, name))?.list;
    return list === undefined ? [] : [join(from, list)];
  });
}

export function hashOf(text: string): string {
  return createHash("sha256").update(text, "utf8").digest("hex").slice(0, 16);
}

function listsDir(tree: StateTree): string {
  return join(tree.dir, "lists");
}

/** `TODO list.md` to `todo-list`. */
function stemOf(list: string): string {
  const name = basename(list)
    .toLowerCase()
    .replace(/\.[a-z]+$/, "");
  const stem = name.replace(/[^a-z0-9]+/g, "-").replace(/^-/, "");
  return stem.slice(0, STEM_CHARS_MAX).replace(/-$/, "") || "list";
}

function readNotes(path: string): ListNotes | undefined {
  let text: string;
  try {
    text = readRegularText(path);
  } catch (error) {
    if ((error as { code?: unknown }).code === "ENOENT") return undefined;
    throw new ErrIo(`cannot read the notes of a list: ${messageOf(error)}`, {
      path,
      phase: "read",
      cause: error,
    });
  }
  const notes = listNotes(parseObject(text) ?? {});
  if (notes !== undefined) return notes;
  throw new ErrInvalidList("the notes of a list are damaged", {
    path,
    phase: "read",
    hint: "remove the file, and enqueue the list again: items whose task or record is still there do not run again",
  });
}
