/**
 * Brings work that waits to land on top of the work of a landing that runs, so that one check and one move of the target do for all of
 * it. It settles nothing: the landing of each work asks git, as after a kill, and finds that the work has landed.
 */
import fs from "node:fs";
import { landingIdOf } from "../../core/landing.ts";
import { type AttemptOutcome, type Failed, failed } from "../../core/outcome.ts";
import { landingFileOf, type StateTree } from "../../core/state-tree.ts";
import { makeCleanCheckout } from "../../git/clean-checkout.ts";
import { listRefs } from "../../git/refs.ts";
import { atCommonDir, isAncestor, type Repository } from "../../git/repository.ts";
import { statOf } from "../../host/regular-file.ts";
import type { Trays } from "../../mailbox/files/trays.ts";
import { findWaiting } from "../../mailbox/find/locate.ts";
import { readSettled } from "../../mailbox/find/settled-record.ts";
import {
  type LandingOrder,
  type LandingRed,
  readLanding,
  stateOf,
  writeLanding,
} from "../../worker/landing-files.ts";
import { bringTogether, changedFiles } from "./bring-together.ts";
import { readChecked } from "./landed-ref.ts";
import { explainLeftovers, explainLinks } from "./leftovers.ts";
import { explainInTheWay, type Place } from "./move-target.ts";
import { lookAtChange } from "./protect-check.ts";

/** The work of one order in a stack. */
export interface Layer {
  order: LandingOrder;
  /** The tip of its branch. */
  tip: string;
  /** The work on top of that of the layers below. */
  commit: string;
  /** The new files that `protect` names: see `Guarded`. */
  added: readonly string[];
}

/** Where a stack is made. */
export interface StackPlace {
  repository: Repository;
  /** Of the worktree in which work is brought together. */
  path: string;
  /** The commit of the target below the stack. */
  from: string;
  target: Place;
}

/** The landing of this order waits in the inbox. All others of the repository do while one runs, unless they wait for something else. */
export function isWaiting(trays: Trays, { task_id }: LandingOrder): boolean {
  return findWaiting(trays, landingIdOf(task_id)) !== undefined;
}

/** The orders that may land together with this one, those that wait longest first. */
export function matesOf(
  { dir }: StateTree,
  trays: Trays,
  order: LandingOrder,
  others: readonly LandingOrder[],
): LandingOrder[] {
  const kind = kindOf(order);
  const sentMs = ({ task_id }: LandingOrder): number =>
    statOf(landingFileOf(dir, task_id, "sent"))?.mtimeMs ?? 0;
  const isMate = (other: LandingOrder): boolean => {
    if (other.land === "exec" || kindOf(other) !== kind || !isWaiting(trays, other)) return false;
    if (readLanding(dir, other.task_id, "sent")?.lease !== other.lease) return false;
    // Its own landing tells what has failed.
    const { fix } = stateOf(dir, other);
    if (readLanding(dir, other.task_id, "red")?.lease === other.lease) return false;
    return fix === null || readSettled(trays, fix.id)?.record.status === "completed";
  };
  return others.filter(isMate).toSorted((a, b) => sentMs(a) - sentMs(b));
}

/** The fields that each order has of its own. What later versions add counts as common. */
const OWN: ReadonlySet<string> = new Set<keyof LandingOrder>([
  "v",
  "task_id",
  "lease",
  "title",
  "land",
  "branch",
  "base",
  "diffstat",
  "command",
  "worktree",
  "cwd",
  "refs",
  "changed_ref",
  "agent",
  "prompt",
  "has_exec",
  "began_ms",
]);

/** What works that are checked together have in common: target, checks, how it is checked out. */
function kindOf({ checks, ...order }: LandingOrder): string {
  const common = Object.entries(order).filter(([name]) => !OWN.has(name));
  // Each worktree has other ports.
  const env = { ...checks.env, MAILCHUTE_PORT_BASE: "" };
  return JSON.stringify([common, { ...checks, env }]);
}

/**
 * Puts the work of these orders on top of the first layer, until the stack has this many layers. It leaves out work that does not fit, and
 * after a conflict the later work on the same files, so that this does not overtake it.
 * @param mendedBy see `fixesOf`
 */
export async function stackUp(
  place: StackPlace,
  first: Layer,
  mates: readonly LandingOrder[],
  layersMax: number,
  mendedBy: (files: readonly string[]) => string | undefined,
): Promise<Layer[]> {
  const { repository } = place;
  const stack = [first];
  const blocked = new Set<string>();
  const refs = await tipsOf(repository, mates);
  for (const order of mates) {
    if (stack.length >= layersMax) break;
    const tip = refs.get(`refs/heads/${order.branch}`);
    if (tip === undefined || tip === order.base || refs.has(order.changed_ref)) continue;
    try {
      if (await cannotLandNow(place, order, tip)) continue;
      const below = stack.at(-1)?.commit ?? first.commit;
      const { commit, files } = await putOn(place, order, tip, below);
      if (commit === undefined || files.some((file) => blocked.has(file)))
        for (const file of files) blocked.add(file);
      else if (mendedBy(files) === undefined && !(await isInTheWay(place, order, commit))) {
        const { changed, added } = await lookAtChange(repository, order, below, commit);
        if (changed.length === 0 && !bendsOthers(order, added, stack))
          stack.push({ order, tip, commit, added });
      }
    } catch {
      // Its own landing fails in the same way, and says why. A stop ends git, too: then nothing more is begun.
      break;
    }
  }
  return stack;
}

/** With `verify_from: target` a check without the new tests must judge each work, and with those of all other works. So only one may add some. */
function bendsOthers(
  { verify_from: isClean }: LandingOrder,
  added: readonly string[],
  stack: readonly Layer[],
): boolean {
  return isClean !== undefined && added.length > 0 && stack.some((one) => one.added.length > 0);
}

/** @returns no commit, but the files in conflict, if the work does not fit; else the files that it changes */
async function putOn(
  { repository, path }: StackPlace,
  { task_id: id, base }: LandingOrder,
  tip: string,
  below: string,
): Promise<{ commit?: string; files: string[] }> {
  const worktree = await makeCleanCheckout(repository, path, tip);
  const together = await bringTogether(repository, worktree, { id, base, tip, target: below });
  if (together.kind === "conflict") return { files: together.files };
  const { commit } = together;
  return { commit, files: await changedFiles(repository, below, commit) };
}

/** Branches and marks of these orders. */
async function tipsOf(
  repository: Repository,
  orders: readonly LandingOrder[],
): Promise<Map<string, string>> {
  const names = orders.flatMap(({ branch, changed_ref }) => [`refs/heads/${branch}`, changed_ref]);
  const refs = names.length === 0 ? [] : await listRefs(repository, ...names);
  return new Map(refs.map(({ name, commit }) => [name, commit]));
}

/** True if the own landing of the work has something to tell: it has landed already, or a part of it is not on its branch. */
async function cannotLandNow(
  { repository, from }: StackPlace,
  order: LandingOrder,
  tip: string,
): Promise<boolean> {
  const call = atCommonDir(repository);
  const earlier = await readChecked(repository, order);
  if (earlier?.tip === tip && (await isAncestor(call, earlier.commit, from))) return true;
  if (await isAncestor(call, tip, from)) return true;
  if ((await explainLeftovers(repository, order)) !== undefined) return true;
  return (await explainLinks(repository, order, tip, from)) !== undefined;
}

async function isInTheWay(
  { repository, target, from }: StackPlace,
  order: LandingOrder,
  to: string,
): Promise<boolean> {
  return (await explainInTheWay(repository, order, target, from, to)) !== undefined;
}

/** How much of a stack can land. */
export interface Found {
  /** So many of the lowest layers were checked, and are green. */
  green: number;
  /** Why the layer above them is not; or, with no green layer, why the check says nothing. */
  red?: AttemptOutcome;
}

/**
 * Checks a stack, and halves it until it knows the lowest red layer. What is below the stack counts as green.
 * @param check of the stack up to so many layers
 */
export async function findRed(
  layers: number,
  check: (layers: number) => Promise<AttemptOutcome | undefined>,
): Promise<Found> {
  let red = await check(layers);
  if (red === undefined) return { green: layers };
  let green = 0;
  for (let end = layers; end - green > 1 && saysRed(red); ) {
    const middle = Math.floor((green + end) / 2);
    const found = await check(middle);
    if (found === undefined) green = middle;
    else {
      end = middle;
      red = found;
    }
  }
  return saysRed(red) ? { green, red } : { green: 0, red };
}

/** False for a check that was stopped from outside. */
function saysRed(outcome: AttemptOutcome): outcome is Failed {
  return outcome.kind === "failed" && outcome.failure !== "cancelled";
}

/** Notes that the check of this work has failed on top of `target`, so that its own landing need not run it again. */
export function noteRed(
  { dir }: StateTree,
  { order, tip }: Layer,
  target: string,
  red: AttemptOutcome,
): void {
  if (!saysRed(red)) return;
  const { task_id, lease } = order;
  writeLanding(dir, task_id, "red", { v: 1, lease, tip, target, failure: red });
}

/** The result of a check of exactly this work on this commit of the target. It counts once. */
export function takeRed(
  { dir }: StateTree,
  { task_id, lease }: LandingOrder,
  { tip, target }: Pick<LandingRed, "tip" | "target">,
): Failed | undefined {
  const found = readLanding(dir, task_id, "red");
  if (found === undefined) return undefined;
  fs.rmSync(landingFileOf(dir, task_id, "red"), { force: true });
  const isIt = found.lease === lease && found.tip === tip && found.target === target;
  if (!isIt) return undefined;
  const { failure, code, message, ...more } = found.failure;
  return failed(failure, code, message, more);
}
