/** Finds the root of a directory: its repository with all its worktrees, or the state tree if that is outside of a repository. */
import { dirname, join } from "node:path";
import { isTree } from "../../../cli/shell/state-dir.ts";
import { findCheckout, realPath } from "../../../git/find-repository.ts";
import { type IdFile, idOfPath, knownIdOf, ownIdOf } from "../../../host/own-id.ts";
import { findScope } from "../scope/find-scope.ts";
import { OUTSIDE, type Scope } from "../scope/scope.ts";

export interface Root {
  /** The readable name. Other roots may have the same one. */
  scope: Scope;
  /** The git directory that its worktrees share, or the state tree. */
  dir: string;
  /** The path that people know. */
  path: string;
  /** Where its random id is kept; undefined for a directory that is no state tree yet: it gets no file of ours. */
  idFile: IdFile | undefined;
}

const ID_FILE = "mailchute-id";
const ID_CHARS = 32;

/** The root of a directory, else that of the state tree. */
export async function findRoot(dir: string, stateDir: string): Promise<Root> {
  return (await rootIn(dir)) ?? (await rootOfTree(stateDir));
}

/** The root of a state tree. */
export async function rootOfTree(stateDir: string): Promise<Root> {
  const inRepository = await rootIn(dirname(stateDir));
  if (inRepository !== undefined) return inRepository;
  const dir = realPath(stateDir);
  const idFile = isTree(dir) ? { ...fileIn(dir), stagingDir: join(dir, ".tmp") } : undefined;
  return { scope: OUTSIDE, dir, path: dir, idFile };
}

async function rootIn(cwd: string): Promise<Root | undefined> {
  const checkout = findCheckout(cwd);
  if (checkout === undefined) return undefined;
  const { commonDir: dir, root: path } = checkout;
  return { scope: await findScope(cwd), dir, path, idFile: fileIn(dir) };
}

function fileIn(dir: string): IdFile {
  return { path: join(dir, ID_FILE), key: "id", chars: ID_CHARS };
}

/** The id of the root, which is made when it has none. @throws a system error */
export function makeId({ dir, idFile }: Root): string {
  return idFile === undefined ? idOfPath(dir, ID_CHARS) : ownIdOf(dir, idFile);
}

/**
 * The ids of the root, the best one first: the one in its file; and those that it has without a file, with the inode and, before its
 * directory is made, without one.
 */
export function knownIds({ dir, idFile }: Root): string[] {
  const known = idFile && knownIdOf(dir, idFile);
  const ofPath = [idOfPath(dir, ID_CHARS), idOfPath(dir, ID_CHARS, false)];
  return known === undefined ? ofPath : [known, ...ofPath];
}
