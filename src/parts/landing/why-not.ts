/** Texts for an agent or a person that say why work does not land, and what to do. Pure. */
import { dirname } from "node:path";
import type { SettingsChange } from "../../git/kept-settings.ts";
import type { LandingOrder } from "../../worker/landing-files.ts";

export function noRoomText(order: LandingOrder | undefined, text: string): string {
  if (order === undefined) return text;
  const { repository, worktree } = order;
  return `no room on the disk of ${repository}, or of ${dirname(worktree)}: make room, it is tried again by itself (${text})`;
}

/**
 * At a terminal git would start the pager that these settings name.
 * @param changes what is known of the changes that its runs may have made
 */
export function heldText(
  { task_id, repository, changed_ref }: LandingOrder,
  changes: readonly SettingsChange[],
): string {
  const others = changes.flatMap(({ runs }) => runs.filter((id) => !isRunOf(task_id, id)));
  const names = [...new Set(changes.flatMap((change) => change.names))].sort().join(", ");
  const what = names === "" ? `git --no-pager cat-file -p ${changed_ref}` : names;
  const who =
    others.length === 0
      ? `a run of ${task_id} changed settings or hooks of ${repository} (${what})`
      : `settings or hooks of ${repository} changed (${what}) while ${task_id} and ${[...new Set(others)].join(", ")} ran: one of these runs changed settings or hooks, or a person did`;
  return `${who}. So this work does not land by itself. Look at them (git --no-pager -C ${repository} config --local --list), and put back what you do not want. Then one command lands this work and all other work that waits for the same: mailchute land ${task_id} --accept-settings`;
}

/** How many files a text names. */
const FILES_MAX = 10;

export function protectedText(
  { task_id }: Pick<LandingOrder, "task_id">,
  files: readonly string[],
): string {
  const more = files.length > FILES_MAX ? ` and ${files.length - FILES_MAX} more` : "";
  return `the work of ${task_id} changes protected files, so it does not land by itself: ${files.slice(0, FILES_MAX).join(", ")}${more}. Look at it (mailchute review ${task_id}); then mailchute land ${task_id} --accept-protected, or mailchute reject ${task_id} "what is wrong"`;
}

/** @param why what the reviewer said; its first line is what lists show */
export function refusedText({ task_id }: Pick<LandingOrder, "task_id">, why: string): string {
  const [first = "", ...rest] = why.split("\n");
  const head = `${first.replace(/\.$/, "")}. Look at it (mailchute review ${task_id}); then mailchute land ${task_id} --no-review, or mailchute reject ${task_id} "what is wrong"`;
  return [head, ...rest].join("\n");
}

export function programsText(
  { task_id }: Pick<LandingOrder, "task_id">,
  programs: readonly string[],
): string {
  return `programs on PATH have changed since the work of ${task_id} began, and its check would run them: ${programs.join(", ")}. Look at them; then mailchute land ${task_id} --accept-protected`;
}

/** Whether the id is that of the task, or of a task that mends or reviews its work. */
export function isRunOf(taskId: string, id: string): boolean {
  return id === taskId || id.startsWith(`${taskId}.`);
}

export function conflictText(
  { task_id, branch, target }: LandingOrder,
  files: readonly string[],
): string {
  return `The work of ${task_id} on ${branch} does not fit ${target}, which has moved on: conflict in ${files.join(", ")}. Bring ${target} into ${branch} in this worktree (git rebase ${target}, or git merge ${target}), solve the conflicts so that both changes hold, and commit.`;
}

export function redText({ task_id, branch, target }: LandingOrder, message: string): string {
  return `The work of ${task_id} on ${branch} was brought together with ${target}, and its check failed there: ${message}. Bring ${target} into ${branch} in this worktree (git rebase ${target}, or git merge ${target}), mend it so that the check passes, and commit.`;
}
