/** Folders that `setup` makes, and that later worktrees get without it (`cache` of a task and of an agent). Pure. */

export interface CacheFields {
  /** Folders, relative to the directory in which `setup` runs. */
  paths: string[];
  /** Files, in the same way. As long as they are the same, so is what `setup` makes. */
  key: string[];
  /** True: files are hard links where the file system has no reflinks. */
  link?: boolean;
}

/** A list holds at most this many paths. */
export const CACHE_LIST_MAX = 64;

/** Why this cannot be a `cache`; undefined when it can. */
export function explainBadCache({ paths, key }: CacheFields): string | undefined {
  for (const [list, all] of Object.entries({ paths, key }))
    for (const path of all) {
      const fault = explainBadPath(path);
      if (fault !== undefined) return `${list}: ${JSON.stringify(path)} ${fault}`;
    }
  const inside = paths.find((path, n) =>
    paths.some((other, m) => m !== n && `${path}/`.startsWith(`${other}/`)),
  );
  return inside === undefined
    ? undefined
    : `paths: ${JSON.stringify(inside)} is in another one, or there twice`;
}

function explainBadPath(path: string): string | undefined {
  const names = path.split("/");
  if (path.startsWith("/")) return "begins at the root; give it from the directory of setup";
  if (names.includes("..")) return "leads out of its directory";
  if (names.includes("") || names.includes(".")) return 'is written with "//", "." or a last "/"';
  return names.some((name) => name.toLowerCase() === ".git") ? "is a part of git" : undefined;
}
