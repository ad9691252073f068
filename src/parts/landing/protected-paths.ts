/**
 * Says which files of a change are protected: those that a check of the work relies on. Names that look alike count as one, and links are
 * followed, so that no other spelling of a path gets past. Pure.
 */
import { posix } from "node:path";
import picomatch from "picomatch";

export interface ChangedFile {
  path: string;
  /** The target has no file at this path. */
  isNew: boolean;
}

/** The files of the target. */
export interface TargetFiles {
  paths: readonly string[];
  /** Each symbolic link, with the path that its text names. */
  links: ReadonlyMap<string, string>;
}

/** Letters of other scripts that look like these. */
const LOOK_ALIKES: readonly (readonly [letter: string, others: string])[] = [
  ["a", "аαɑ"],
  ["b", "Ьв"],
  ["c", "сϲ"],
  ["d", "ԁ"],
  ["e", "еε"],
  ["g", "ɡ"],
  ["h", "һн"],
  ["i", "іιıɩ"],
  ["j", "ј"],
  ["k", "кκ"],
  ["l", "ӏ"],
  ["m", "м"],
  ["n", "ո"],
  ["o", "оοօ"],
  ["p", "рρ"],
  ["q", "ԛ"],
  ["r", "г"],
  ["s", "ѕ"],
  ["t", "тτ"],
  ["u", "υս"],
  ["v", "νѵ"],
  ["w", "ԝω"],
  ["x", "хχ"],
  ["y", "уγ"],
  [".", "․。"],
  ["/", "∕⁄"],
  ["_", "＿"],
  ["-", "‐‑‒–—−"],
];
const PLAIN = new Map(
  LOOK_ALIKES.flatMap(([letter, others]) =>
    Array.from(others, (other) => [other, letter] as const),
  ),
);
/** So many links are followed one after the other. */
const LINKS_MAX = 8;

/** One form for all spellings of a path that a person or a file system may take for the same. */
export function foldPath(path: string): string {
  const bare = path
    .normalize("NFKD")
    .replace(/[\p{M}\p{Cc}\p{Cf}\p{Default_Ignorable_Code_Point}]/gu, "")
    .toLowerCase();
  return /^[\x20-\x7e]*$/.test(bare)
    ? bare
    : Array.from(bare, (letter) => PLAIN.get(letter) ?? letter).join("");
}

/**
 * @param globs a pattern protects the files that the target has; one that begins with `+` also forbids new ones
 * @param files more files that are protected, such as the script that checks the work
 */
export function protectedPaths(
  globs: readonly string[],
  files: readonly string[],
  changed: readonly ChangedFile[],
  target: TargetFiles,
): string[] {
  const both = globs.map((glob) => ({
    isForNew: glob.startsWith("+"),
    glob: glob.replace(/^\+/, ""),
  }));
  const isOld = matcherOf(both.map(({ glob }) => glob));
  const isNew = matcherOf(both.flatMap(({ isForNew, glob }) => (isForNew ? [glob] : [])));
  const named = new Set(files.map(foldPath));
  let existing: Set<string> | undefined;
  const isThere = (folded: string): boolean => {
    existing ??= new Set(target.paths.map(foldPath));
    return existing.has(folded);
  };
  const links = [...target.links].map(([at, to]) => [foldPath(at), foldPath(to)] as const);
  const isProtected = ({ path, isNew: isAdded }: ChangedFile): boolean =>
    namesOf(foldPath(path), links).some((name) => {
      if (isNew(name)) return true;
      return (isOld(name) || named.has(name)) && (!isAdded || isThere(name));
    });
  return changed.flatMap((one) => (isProtected(one) ? [one.path] : []));
}

/** The new files that the patterns name: tests that the work adds. */
export function addedPaths(globs: readonly string[], changed: readonly ChangedFile[]): string[] {
  const isMatch = matcherOf(globs.map((glob) => glob.replace(/^\+/, "")));
  return changed.flatMap(({ path, isNew }) => (isNew && isMatch(foldPath(path)) ? [path] : []));
}

function matcherOf(globs: readonly string[]): (folded: string) => boolean {
  if (globs.length === 0) return () => false;
  const isMatch = picomatch(globs.map(foldPath), { dot: true });
  // A link or another repository may stand in the place of a folder whose files are protected.
  return (folded) => isMatch(folded) || isMatch(`${folded}/.`);
}

/** The path itself, and those by which links of the target lead to it. */
function namesOf(path: string, links: readonly (readonly [at: string, to: string])[]): string[] {
  const names = new Set([path]);
  for (let round = 0; round < LINKS_MAX; round++) {
    const before = Array.from(names);
    for (const name of before)
      for (const [at, to] of links)
        if (name === to || to === "" || name.startsWith(`${to}/`))
          names.add(posix.join(at, name.slice(to.length)));
    if (names.size === before.length) break;
  }
  return [...names];
}
