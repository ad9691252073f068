/** Reads and changes refs. Each change names the old value, so that it overwrites no ref by mistake. */
import { ErrGit } from "../core/errors.ts";
import { atCommonDir, type Repository } from "./repository.ts";
import { askGit, gitLines } from "./run-git.ts";

export interface Ref {
  name: string;
  commit: string;
}

/** As the old value of a ref, it means that the ref must not exist. */
const NONE = "";

/** Refs below a prefix, such as `refs/heads/`. */
export async function listRefs(repository: Repository, ...prefixes: string[]): Promise<Ref[]> {
  const format = "--format=%(objectname) %(refname)";
  const lines = await gitLines(atCommonDir(repository), "for-each-ref", format, ...prefixes);
  return lines.map((line) => {
    const space = line.indexOf(" ");
    return { commit: line.slice(0, space), name: line.slice(space + 1) };
  });
}

/** Names of branches, of this repository and of its remotes, that contain the commit. */
export async function branchesWith(repository: Repository, commit: string): Promise<string[]> {
  const asked = ["for-each-ref", "--format=%(refname)", "--contains", commit];
  return gitLines(atCommonDir(repository), ...asked, "refs/heads/", "refs/remotes/");
}

/**
 * git keeps refs as files in folders, so `release` and `release/1.0` exclude each other. It says so only when it makes the second one.
 * @throws ErrGit when one of the names cannot be made beside the refs that are there
 */
export async function refuseClash(repository: Repository, ...names: string[]): Promise<void> {
  const above = names.flatMap((name) =>
    [...name.matchAll(/\//g)].slice(1).map(({ index }) => ({ name, other: name.slice(0, index) })),
  );
  const input = above.map(({ other }) => `${other}\n`).join("");
  const call = atCommonDir(repository);
  const found = await gitLines({ ...call, input }, "cat-file", "--batch-check");
  const clash = above.find((_, n) => /^[0-9a-f]+ commit /.test(found[n] ?? ""));
  const folders = names.map((name) => `${name}/`);
  const asked = ["for-each-ref", "--count=1", "--format=%(refname)", ...folders];
  const [below = ""] = clash === undefined ? await gitLines(call, ...asked) : [];
  const name = clash?.name ?? names.find((one) => below.startsWith(`${one}/`));
  const other = clash?.other ?? below;
  if (name === undefined) return;
  throw new ErrGit(
    `${shortName(name)} cannot be made beside ${shortName(other)}: one name would be a folder of the other`,
    {
      path: repository.commonDir,
      hint: other.startsWith("refs/heads/")
        ? `rename it (git branch -m ${other.slice("refs/heads/".length)} NAME), or choose another name`
        : `remove that ref (git update-ref -d ${other})`,
    },
  );
}

function shortName(ref: string): string {
  return ref.replace(/^refs\/heads\//, "the branch ");
}

/** Makes a ref. @returns false when it exists */
export async function makeRef(repository: Repository, { name, commit }: Ref): Promise<boolean> {
  const call = { ...atCommonDir(repository), answers: [128] };
  const { code } = await askGit(call, "update-ref", name, commit, NONE);
  if (code === 0) return true;
  if ((await listRefs(repository, name)).some((ref) => ref.name === name)) return false;
  await refuseClash(repository, name);
  // This call fails with the reason.
  await askGit(atCommonDir(repository), "update-ref", name, commit, NONE);
  return true;
}

/** Makes a ref to a text. @returns false when it exists. @throws ErrGit */
export async function makeTextRef(
  repository: Repository,
  name: string,
  text: string,
): Promise<boolean> {
  const call = { ...atCommonDir(repository), input: text };
  const { out } = await askGit(call, "hash-object", "-w", "--stdin");
  return makeRef(repository, { name, commit: out.toString().trim() });
}

/** How many commits of a branch are on no other branch, here or on a remote. @param branch without `refs/heads/` */
export async function countOwnCommits(repository: Repository, branch: string): Promise<number> {
  const others = [`--exclude=${branch}`, "--branches", "--remotes"];
  const call = atCommonDir(repository);
  const [count] = await gitLines(
    call,
    "rev-list",
    "--count",
    `refs/heads/${branch}`,
    "--not",
    ...others,
  );
  return Number(count);
}

/** Deletes refs that still have these values; all of them or none. @throws ErrGit when one has changed */
export async function deleteRefs(repository: Repository, refs: readonly Ref[]): Promise<void> {
  if (refs.length === 0) return;
  const input = refs.map(({ name, commit }) => `delete ${name}\0${commit}\0`).join("");
  await askGit({ ...atCommonDir(repository), input }, "update-ref", "--stdin", "-z");
}

/** Those of the commits that no branch, tag or remote contains, and no ref below these prefixes. */
export async function unreachable(
  repository: Repository,
  commits: readonly string[],
  ...refs: string[]
): Promise<string[]> {
  if (commits.length === 0) return [];
  const call = { ...atCommonDir(repository), input: `${commits.join("\n")}\n` };
  const kept = ["--branches", "--tags", "--remotes", ...refs.map((one) => `--glob=${one}`)];
  const found = await gitLines(call, "rev-list", "--stdin", "--ignore-missing", "--not", ...kept);
  const all = new Set(found);
  return commits.filter((commit) => all.has(commit));
}
