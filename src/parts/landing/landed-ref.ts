/**
 * The ref of a landing: a commit whose parents are the checked commit and the tip of its branch. It is written before the target
 * moves. So after a crash git can tell whether the work has landed. The ref also keeps the commits of the branch after a rebase.
 */
import { compact } from "../../core/compact.ts";
import { listRefs } from "../../git/refs.ts";
import { atCommonDir, type Repository } from "../../git/repository.ts";
import { askGit, gitText } from "../../git/run-git.ts";
import type { LandingOrder } from "../../worker/landing-files.ts";

export interface Checked {
  commit: string;
  /** The tip of the branch. */
  tip: string;
  /** The commit of the target on which it was brought. Missing in notes of earlier versions, and for work that the target had already. */
  onto?: string;
  /** The tasks whose work was checked with it. Left out for none. */
  mates?: readonly string[];
}

const nameOf = ({ refs }: Pick<LandingOrder, "refs">): string => `${refs}landing`;

export async function readChecked(
  repository: Repository,
  order: Pick<LandingOrder, "refs">,
): Promise<Checked | undefined> {
  const [ref] = await listRefs(repository, nameOf(order));
  if (ref === undefined) return undefined;
  const text = await gitText(atCommonDir(repository), "show", "-s", "--format=%B", ref.commit);
  const [, commit] = /^commit ([0-9a-f]+)$/m.exec(text) ?? [];
  const [, tip] = /^tip ([0-9a-f]+)$/m.exec(text) ?? [];
  const [, onto] = /^onto ([0-9a-f]+)$/m.exec(text) ?? [];
  const mates = /^with (.+)$/m.exec(text)?.[1]?.split(" ");
  return commit === undefined || tip === undefined
    ? undefined
    : { commit, tip, ...compact({ onto, mates }) };
}

export async function noteChecked(
  repository: Repository,
  order: LandingOrder,
  { commit, tip, onto, mates = [] }: Checked,
): Promise<void> {
  const [before] = await listRefs(repository, nameOf(order));
  const call = atCommonDir(repository);
  const parents = new Set([commit, tip, ...(before === undefined ? [] : [before.commit])]);
  const facts = [
    `commit ${commit}`,
    `tip ${tip}`,
    ...(onto === undefined ? [] : [`onto ${onto}`]),
    ...(mates.length === 0 ? [] : [`with ${mates.join(" ")}`]),
  ];
  const input = `Landing of ${order.task_id} on ${order.target}\n\n${facts.join("\n")}\n`;
  const named = [...parents].flatMap((one) => ["-p", one]);
  const made = await gitText({ ...call, input }, "commit-tree", `${commit}^{tree}`, ...named);
  await askGit(call, "update-ref", nameOf(order), made, before?.commit ?? "");
}
