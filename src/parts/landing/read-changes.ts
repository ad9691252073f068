/** Reads from git what a change touches, and what stands in the target. */
import { posix } from "node:path";
import { atCommonDir, type Repository } from "../../git/repository.ts";
import { askGit, gitList } from "../../git/run-git.ts";
import type { ChangedFile, TargetFiles } from "./protected-paths.ts";

const LINK = "120000";
const NOTHING = "000000";

/** Renamed files count as one removed and one new file. @throws ErrGit */
export async function readChanges(
  repository: Repository,
  from: string,
  to: string,
): Promise<ChangedFile[]> {
  const args = ["diff", "--raw", "-z", "--no-renames", "--ignore-submodules=none", from, to];
  const parts = await gitList(atCommonDir(repository), ...args);
  // Pairs: `:old-mode new-mode old-id new-id status`, and the path.
  return parts.flatMap((part, n) =>
    n % 2 === 0 ? [{ path: parts[n + 1] ?? "", isNew: part.startsWith(`:${NOTHING}`) }] : [],
  );
}

/** @throws ErrGit */
export async function readFilesOf(repository: Repository, commit: string): Promise<TargetFiles> {
  const call = atCommonDir(repository);
  const lines = await gitList(call, "ls-tree", "-r", "-z", "--full-tree", commit);
  const paths: string[] = [];
  const links = new Map<string, string>();
  for (const line of lines) {
    const [, mode = "", oid = "", path = ""] = /^(\d+) \w+ ([0-9a-f]+)\t(.*)$/s.exec(line) ?? [];
    paths.push(path);
    if (mode !== LINK) continue;
    const text = (await askGit(call, "cat-file", "blob", oid)).out.toString();
    const to = posix.join(posix.dirname(path), text).replace(/\/$/, "");
    if (!text.startsWith("/") && !to.startsWith("..")) links.set(path, to === "." ? "" : to);
  }
  return { paths, links };
}
