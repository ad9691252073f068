/** Says which commits no branch contains any more. */
import { atCommonDir, openRepository } from "./repository.ts";
import { askGit, gitLines } from "./run-git.ts";

/** Branches of tasks begin at what has landed: they do not show that a person has it. */
const OF_TASKS = "--exclude=mailchute/*";

/**
 * Those of the commits that are neither on the target nor on another branch, here or on a remote. Empty when git cannot be asked.
 * @param repository its git directory
 * @param target without `refs/heads/`
 */
export async function commitsOnNoBranch(
  repository: string,
  target: string,
  commits: readonly string[],
): Promise<string[]> {
  try {
    const call = atCommonDir(await openRepository(repository));
    const asked = ["rev-parse", "--quiet", "--verify", `refs/heads/${target}`];
    const { code } = await askGit({ ...call, answers: [1] }, ...asked);
    const kept = code === 0 ? [`refs/heads/${target}`] : [];
    const on = ["--not", ...kept, OF_TASKS, "--branches", "--remotes", "--tags"];
    const input = `${commits.join("\n")}\n`;
    const found = await gitLines({ ...call, input }, "cat-file", "--batch-check=%(objectname)");
    // A line for each commit, in order; one that is not there any more has no name.
    const there = commits.filter((commit, index) => found[index] === commit);
    const off = new Set(
      there.length === 0 ? [] : await gitLines(call, "rev-list", ...there, ...on),
    );
    return commits.filter((commit) => off.has(commit) || !there.includes(commit));
  } catch {
    return [];
  }
}
