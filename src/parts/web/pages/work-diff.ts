/** Reads the changed lines of a work for its page, and its pictures. What has been read is kept: two commits never change. */
import { type FileDiff, FOLDED, notesOn, readDiff, readPicture } from "../../../git/diff.ts";
import { atCommonDir, openRepository } from "../../../git/repository.ts";
import { changedWords, type Spans } from "../../../text/changed-words.ts";
import { safe } from "../../../text/render.ts";
import { type DiffFile, type DiffHunk, pathWith, shown } from "../page.ts";

/** What changes between two commits of a repository. */
export interface Change {
  task_id: string;
  repository: string;
  start: string;
  tip: string;
}

/** Lines on one page, and on the page of a single file. */
const ALL = { files: 300, lines: 3000, fileLines: 1000, fileBytes: 1 << 20 };
const ONE = { files: 1, lines: 5000, fileLines: 5000, fileBytes: 4 << 20 };
/** With the lines around the changed ones (characters). */
const CHARS_MAX = { all: 300_000, one: 800_000 };
export const FILES_MAX = 1000;
const KEPT_MAX = 8;
const PICTURE = /\.(?:png|jpe?g|gif|webp)$/i;
const PICTURE_BYTES_MAX = 1 << 20;

export class WorkDiffs {
  private readonly kept = new Map<string, Promise<FileDiff[]>>();

  /** @param only the path of one file. @throws ErrGit */
  read({ repository, start, tip }: Change, only: string | undefined): Promise<FileDiff[]> {
    const key = JSON.stringify([repository, start, tip, only]);
    const before = this.kept.get(key);
    if (before !== undefined) return before;
    const files = readFiles(repository, [start, tip], only);
    this.kept.set(key, files);
    // What failed is tried again.
    files.catch(() => this.kept.delete(key));
    const [oldest] = this.kept.keys();
    if (oldest !== undefined && this.kept.size > KEPT_MAX) this.kept.delete(oldest);
    return files;
  }

  /** A picture that the work changes; undefined when it is none, too large, or of something else. @throws ErrGit */
  async picture(change: Change, id: string): Promise<Awaited<ReturnType<typeof readPicture>>> {
    const files = await this.read(change, undefined);
    const isOfWork = files.some(({ path, ids }) => PICTURE.test(path) && ids.includes(id));
    const { repository } = change;
    if (!isOfWork) return undefined;
    return readPicture(atCommonDir(await openRepository(repository)), id, PICTURE_BYTES_MAX);
  }
}

async function readFiles(
  repository: string,
  commits: [string, string],
  only: string | undefined,
): Promise<FileDiff[]> {
  const call = atCommonDir(await openRepository(repository));
  return readDiff(call, commits, only === undefined ? ALL : ONE, only);
}

/** @param isOne the page of a single file: what is too long for it has no page */
export function diffFiles(
  { task_id: id, start, tip }: Change,
  files: readonly FileDiff[],
  isOne: boolean,
): DiffFile[] {
  const max = isOne ? CHARS_MAX.one : CHARS_MAX.all;
  let chars = 0;
  return files.slice(0, FILES_MAX).map((file) => {
    const { path, insertions, deletions, ids } = file;
    const own = file.hunks.reduce((sum, { lines }) => sum + charsOf(lines), 0);
    const folded = file.folded ?? (own > max ? "large" : chars + own > max ? "many" : null);
    if (folded === null) chars += own;
    const isLong = folded === "generated" || folded === "large" || folded === "many";
    const todo = isLong && isOne ? `; do: git diff ${start} ${tip} -- ${path}` : "";
    const page = pathWith(`/review/${encodeURIComponent(id)}`, { file: path });
    return {
      path: shown(path),
      notes: notesOn(file).map(shown),
      insertions,
      deletions,
      why: folded === null ? "" : shown(`${FOLDED[folded]}${todo}`),
      to: isLong && !isOne ? { text: "show it", to: page } : null,
      hunks: folded === null ? file.hunks.map((hunk) => hunkOf(hunk)) : [],
      pictures: PICTURE.test(path) ? [pictureId(ids[0]), pictureId(ids[1])] : null,
    };
  });
}

function pictureId(id: string): string {
  return /^0+$/.test(id) ? "" : id;
}

function charsOf(lines: readonly { text: string }[]): number {
  return lines.reduce((sum, { text }) => sum + text.length + 8, 0);
}

function hunkOf({ old, new: now, near, lines }: FileDiff["hunks"][number]): DiffHunk {
  const texts = lines.map(({ text }) => lineText(text));
  const marks = marksIn(lines, texts);
  return {
    old,
    new: now,
    near: shown(near),
    lines: lines.map(({ is }, at) => {
      const own = marks.get(at) ?? [];
      return own.length === 0 ? [is, texts[at] ?? ""] : [is, texts[at] ?? "", own];
    }),
  };
}

/** A tab stays one. */
function lineText(text: string): string {
  return text.split("\t").map(safe).join("\t");
}

/** The changed words, by the place of the line. Lines that are removed belong to those that are added right after them. */
function marksIn(
  lines: readonly { is: string }[],
  texts: readonly string[],
): ReadonlyMap<number, Spans> {
  const marks = new Map<number, Spans>();
  const endOf = (from: number, is: string): number => {
    let to = from;
    while (lines[to]?.is === is) to++;
    return to;
  };
  for (let at = 0; at < lines.length; at++) {
    const added = endOf(at, "-");
    if (added === at) continue;
    const count = Math.min(added - at, endOf(added, "+") - added);
    for (let n = 0; n < count; n++) {
      const spans = changedWords(texts[at + n] ?? "", texts[added + n] ?? "");
      marks.set(at + n, spans[0]);
      marks.set(added + n, spans[1]);
    }
    at = added - 1;
  }
  return marks;
}
