/** Removes worktrees whose work is safe elsewhere. Removes named ones even if they hold work, after it is saved. */
import { messageOf } from "../../core/errors.ts";
import { awaitLockOfMany } from "../../git/left-locks.ts";
import { listRefs } from "../../git/refs.ts";
import type { Repository } from "../../git/repository.ts";
import { inTurn } from "../../git/turn.ts";
import type { AllWorktrees, FoundWorktree } from "./all-worktrees.ts";
import { type Holdings, lookAt, reasonsToStay } from "./holdings.ts";
import { dropStaleLocks } from "./make.ts";
import { idOfBase } from "./names.ts";
import { dropSpareBranch, emptyTrash, leftText, removeWorktree } from "./remove.ts";
import { userOf } from "./worktree-user.ts";

export interface CleanWish {
  /** Removes these, and saves their work first. Empty: removes all whose work is safe elsewhere. */
  ids: readonly string[];
  /** True: ignored files are saved, too, so they keep no worktree. */
  withIgnored: boolean;
  isDryRun: boolean;
  /** True: also removes a worktree whose commits only its own branch has. The branch stays. */
  mayLeaveBranch?: boolean;
  /** Setting `worktree_ignored_may_go`. */
  mayGo: readonly string[];
  /** Whether the task waits or runs. */
  isLive: (id: string) => boolean;
}

export interface Cleaned {
  id: string;
  path: string | undefined;
  removed: boolean;
  /** Why it stays, or would stay if it were not named. */
  reasons: string[];
  /** The ref that holds its work; null when nothing was saved. */
  saved: string | null;
}

const LIVE = "its task has not ended";

export async function cleanWorktrees(all: AllWorktrees, wish: CleanWish): Promise<Cleaned[]> {
  const { dir } = all;
  if (dir === undefined) return [];
  const isNamed = wish.ids.length > 0;
  const wanted = isNamed ? all.found.filter(({ id }) => wish.ids.includes(id)) : all.found;
  const cleaned: Cleaned[] = [];
  for (const one of wanted) cleaned.push(await cleanOne(one, dir, wish));
  if (wish.isDryRun) return cleaned;
  // An earlier call that was killed in the middle may have left spare branches.
  if (!isNamed)
    for (const repository of all.repositories) {
      await awaitLockOfMany(repository.commonDir);
      await dropSpareBranches(repository, wish);
    }
  all.problems.push(...(await emptyTrash(dir)).map(leftText));
  return cleaned;
}

async function cleanOne(found: FoundWorktree, dir: string, wish: CleanWish): Promise<Cleaned> {
  const { id, repository, worktree } = found;
  const stays = { id, path: worktree.path, removed: false, saved: null };
  try {
    return await inTurn(repository, async () => {
      // Asked in turn, because a run that begins now waits for its turn before it uses the worktree.
      const user = userOf(worktree.gitDir, id);
      if (wish.isLive(id) || wish.isLive(user)) return { ...stays, reasons: [LIVE] };
      dropStaleLocks(repository, id, worktree.gitDir);
      const holdings = await lookAt(repository, worktree, id, wish.mayGo);
      const commits = wish.mayLeaveBranch === true ? 0 : holdings.commits;
      const reasons = reasonsToStay({ ...holdings, commits });
      const blocking = wish.ids.includes(id) ? reasonsDespiteSave(holdings, wish) : reasons;
      if (blocking.length > 0 || wish.isDryRun)
        return { ...stays, removed: blocking.length === 0, reasons };
      const order = {
        repository,
        worktree,
        id,
        attempt: 0,
        more: wish.withIgnored ? holdings.ignored : [],
      };
      const { snapshot, ref } = await removeWorktree(order, dir);
      const { missing } = snapshot;
      return missing.length > 0
        ? { ...stays, reasons: [...new Set([...reasons, ...missing])], saved: ref ?? null }
        : { ...stays, removed: true, reasons, saved: ref ?? null };
    });
  } catch (error) {
    return { ...stays, reasons: [messageOf(error)] };
  }
}

/** Reasons to stay that a save does not remove. */
function reasonsDespiteSave(holdings: Holdings, { withIgnored }: CleanWish): string[] {
  const files = { modified: [], untracked: [], unmerged: [], uncommittable: [] };
  const nothing = { ...files, operation: undefined, commits: 0, is_head_lost: false };
  const ignored = withIgnored ? [] : holdings.ignored;
  return reasonsToStay({ ...holdings, ...nothing, ignored });
}

async function dropSpareBranches(repository: Repository, { isLive }: CleanWish): Promise<void> {
  const bases = await listRefs(repository, "refs/mailchute/");
  const ids = bases.flatMap(({ name }) => idOfBase(name) ?? []);
  for (const id of ids)
    await inTurn(repository, async () => {
      if (isLive(id)) return;
      dropStaleLocks(repository, id);
      await dropSpareBranch(repository, id);
    });
}
