/** What an input of the corpus is: how it is made, under which name it is dropped, and the answer it must get. */

/** What must become of a dropped file. */
export type Answer =
  /** Moved to `failed/`, whole, with a record. `reason` is part of its `error`. */
  | { kind: "refused"; reason: string; code?: string; offset?: number }
  /** Runs once and completes; the record holds its very text. */
  | { kind: "runs"; output?: string }
  /** Accepted, but cannot run: a record of this kind that holds its very text. `reason` is part of its `error`. */
  | { kind: "fails"; failure: string; reason: string }
  /** A task, but not for now: it stays in the inbox, whole. */
  | { kind: "waits" }
  /** Not ours: it stays where it is and nothing is said. */
  | { kind: "ignored" }
  /** Its producer took it away again: nothing is left of it. */
  | { kind: "gone" }
  /** A batch that settles; `faults` are parts of the errors of its lines, by number. */
  | { kind: "batch"; completed: number; bad: number; faults: Readonly<Record<number, string>> };

export interface InputCase {
  /** What kind of trouble it is. */
  group: string;
  title: string;
  /** The name in the inbox; bytes when it is not UTF-8. */
  name: string | Buffer;
  /** Content of a regular file … */
  content?: string | Buffer;
  /** … or how to make what is not a regular file, or not only one. `path` is where, `dir` a directory outside of the mailbox. */
  make?: (path: Buffer, dir: string) => void;
  /** … or what its producer does in the inbox itself, in steps. `path` is the name there. */
  write?: (path: string) => Promise<void>;
  /** False when this machine cannot make it; said on stderr. */
  isPossible?: boolean;
  answer: Answer;
}

export const GOOD = '{"exec":["true"]}';
export const isRoot = process.getuid?.() === 0;

export function refused(reason: string, offset?: number): Answer {
  return { kind: "refused", reason, ...(offset === undefined ? {} : { offset }) };
}

export function exists(reason: string): Answer {
  return { kind: "refused", reason, code: "ErrTaskExists" };
}

export function fails(failure: string, reason: string): Answer {
  return { kind: "fails", failure, reason };
}

/** @param faults parts of the errors of its bad lines, by number */
export function batch(completed: number, faults: Record<number, string> = {}): Answer {
  return { kind: "batch", completed, bad: Object.keys(faults).length, faults };
}

export const RUNS: Answer = { kind: "runs" };
export const WAITS: Answer = { kind: "waits" };
export const IGNORED: Answer = { kind: "ignored" };
export const GONE: Answer = { kind: "gone" };

/** Cases of content under names that are fine: title, bytes, answer. */
export function contents(
  group: string,
  cases: readonly (readonly [title: string, bytes: string | Buffer, answer: Answer])[],
  ending = ".json",
): InputCase[] {
  const stem = group.replace(/[^a-z0-9]+/gi, "-");
  return cases.map(([title, content, answer], i) => ({
    group,
    title,
    name: `${stem}-${i + 1}${ending}`,
    content,
    answer,
  }));
}

/** Cases of names; the content is fine. */
export function names(
  group: string,
  answer: Answer,
  cases: readonly (readonly [title: string, name: string | Buffer])[],
): InputCase[] {
  return cases.map(([title, name]) => ({ group, title, name, content: GOOD, answer }));
}
