/** Removes saves of worktrees when their retention is over. That time is long, because a save may hold work that is nowhere else. */
import { isExpired } from "../../core/retention.ts";
import { deleteRefs, listRefs } from "../../git/refs.ts";
import { atCommonDir, type Repository } from "../../git/repository.ts";
import { gitLines } from "../../git/run-git.ts";
import { inTurn } from "../../git/turn.ts";
import type { AllWorktrees } from "./all-worktrees.ts";
import { endedRefOf, readSave, type Save } from "./names.ts";
import { savesOf } from "./save.ts";

export interface SavesToClean {
  /** `retention.saves_days`. */
  days: number;
  nowMs: number;
  /** Whether the task, or another task that goes on with its work, waits or runs. */
  isLive: (id: string) => boolean;
}

/** Keeps the saves of a task that has a worktree. @returns the removed refs */
export async function cleanSaves(
  { repositories, found }: AllWorktrees,
  wish: SavesToClean,
): Promise<string[]> {
  const withWorktree = new Set(found.map(({ id }) => id));
  const gone: string[] = [];
  for (const repository of repositories) {
    const old = await oldSaves(repository, wish);
    const saves = old.filter(({ id }) => !withWorktree.has(id));
    if (saves.length === 0) continue;
    await inTurn(repository, async () => {
      const spare = saves.filter(({ id }) => !wish.isLive(id));
      const refs = spare.map(({ ref, commit }) => ({ name: ref, commit }));
      await deleteRefs(repository, refs);
      for (const id of new Set(spare.map((save) => save.id)))
        if ((await savesOf(repository, id)).length === 0)
          await deleteRefs(repository, await listRefs(repository, endedRefOf(id)));
      gone.push(...refs.map(({ name }) => name));
    });
  }
  return gone;
}

async function oldSaves(
  repository: Repository,
  { days, nowMs }: Pick<SavesToClean, "days" | "nowMs">,
): Promise<Save[]> {
  const format = "--format=%(objectname) %(committerdate:unix) %(refname)";
  const lines = await gitLines(atCommonDir(repository), "for-each-ref", format, "refs/mailchute/");
  return lines.flatMap((line) => {
    const [commit = "", seconds = "", name = ""] = line.split(" ");
    // Other refs may point to texts, which have no date.
    if (!/^\d+$/.test(seconds) || !isExpired(nowMs - Number(seconds) * 1000, days)) return [];
    return readSave({ name, commit }) ?? [];
  });
}
