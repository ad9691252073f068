/**
 * Removes what landings leave when their retention is over: the ref with the commits before the rebase, saves of the task, and the
 * files in `landings/`. Keeps work that has not landed, and saves with commits that are nowhere else.
 */
import fs from "node:fs";
import { join } from "node:path";
import { fixIdOf, landingIdOf } from "../../core/landing.ts";
import { isExpired } from "../../core/retention.ts";
import { landingFileOf, landingsDir } from "../../core/state-tree.ts";
import { deleteRefs, listRefs, type Ref, unreachable } from "../../git/refs.ts";
import {
  atCommonDir,
  commitOf,
  isAncestor,
  openRepository,
  type Repository,
} from "../../git/repository.ts";
import { gitText } from "../../git/run-git.ts";
import { readHeld } from "../../git/snapshot.ts";
import { inTurn } from "../../git/turn.ts";
import { listDir } from "../../host/list-dir.ts";
import { statOf } from "../../host/regular-file.ts";
import type { Trays } from "../../mailbox/files/trays.ts";
import { type LandingOrder, listOrders, readLanding, stateOf } from "../../worker/landing-files.ts";
import { readChecked } from "./landed-ref.ts";
import { cleanProofs } from "./proof.ts";
import { isThere } from "./submit-landing.ts";

const FILES = ["state", "sent", "red", "order"] as const;

export interface LandingsToClean {
  stateDir: string;
  trays: Trays;
  /** `retention.landed_days`. */
  days: number;
  nowMs: number;
}

/** @returns the tasks whose landings were cleaned. @throws the first error, after all other landings were cleaned */
export async function cleanLandings(wish: LandingsToClean): Promise<string[]> {
  const cleaned: string[] = [];
  let fault: { error: unknown } | undefined;
  for (const id of listOrders(wish.stateDir)) {
    try {
      if (await cleanOne(id, wish)) cleaned.push(id);
    } catch (error) {
      fault ??= { error };
    }
  }
  cleanVerdicts(wish);
  if (fault !== undefined) throw fault.error;
  return cleaned;
}

async function cleanOne(id: string, wish: LandingsToClean): Promise<boolean> {
  const { stateDir, trays, days, nowMs } = wish;
  // Calls no git before the files are old enough.
  if (!isExpired(nowMs - lastChangeMs(stateDir, id), days)) return false;
  const order = readLanding(stateDir, id, "order");
  if (order === undefined || !fs.existsSync(order.repository)) return false;
  const repository = await openRepository(order.repository);
  return inTurn(repository, async () => {
    if (isLive(stateDir, trays, order)) return false;
    const call = atCommonDir(repository);
    // The work has not landed, or a person goes on with its branch.
    if ((await commitOf(call, `refs/heads/${order.branch}`)) !== undefined) return false;
    const refs = await listRefs(repository, order.refs);
    const landing = refs.find(({ name }) => name === `${order.refs}landing`);
    if (landing !== undefined && !(await isOver(repository, order, landing, wish))) return false;
    const spare = landing === undefined ? [] : await spareSaves(repository, order, refs, landing);
    await deleteRefs(repository, [...spare, ...(landing === undefined ? [] : [landing])]);
    await cleanProofs(repository);
    for (const what of FILES) fs.rmSync(landingFileOf(stateDir, id, what), { force: true });
    return true;
  });
}

function lastChangeMs(stateDir: string, id: string): number {
  const times = FILES.map((what) => statOf(landingFileOf(stateDir, id, what))?.mtimeMs);
  return Math.max(...times.map((timeMs) => timeMs ?? 0));
}

function isLive(stateDir: string, trays: Trays, order: LandingOrder): boolean {
  const { task_id } = order;
  const fix = stateOf(stateDir, order).fix?.id ?? fixIdOf(task_id, 1);
  return [task_id, landingIdOf(task_id), fix].some((id) => isThere(trays, id));
}

/** True if the landing is past its retention, and its checked commit is on a branch, a tag or a remote. */
async function isOver(
  repository: Repository,
  order: LandingOrder,
  { commit }: Ref,
  { days, nowMs }: LandingsToClean,
): Promise<boolean> {
  const seconds = await gitText(atCommonDir(repository), "show", "-s", "--format=%ct", commit);
  if (!isExpired(nowMs - Number(seconds) * 1000, days)) return false;
  const checked = await readChecked(repository, order);
  return checked !== undefined && (await unreachable(repository, [checked.commit])).length === 0;
}

/**
 * Saves whose commits are elsewhere, too: their files were drafts of what has landed. If no other save is left, it adds the ref
 * `ended`, which marks the saves as past.
 */
async function spareSaves(
  repository: Repository,
  { refs: prefix }: LandingOrder,
  refs: readonly Ref[],
  landing: Ref,
): Promise<Ref[]> {
  const call = atCommonDir(repository);
  const saves = refs.filter(({ name }) => /\/\d+(?:\.\d+)?$/.test(name));
  const spare: Ref[] = [];
  for (const ref of saves) {
    const held = readHeld(await gitText(call, "show", "-s", "--format=%B", ref.commit));
    const commits = held.flatMap(([what, commit]) => (what === "index" ? [] : [commit]));
    const own = await unreachable(repository, commits);
    const isKept = await Promise.all(own.map((one) => isAncestor(call, one, landing.commit)));
    if (isKept.every(Boolean)) spare.push(ref);
  }
  const ended = refs.filter(({ name }) => name === `${prefix}ended`);
  return spare.length === saves.length ? [...spare, ...ended] : spare;
}

/** Removes verdicts past the retention. If the work has not landed until then, the reviewer is asked again. */
function cleanVerdicts({ stateDir, trays, days, nowMs }: LandingsToClean): void {
  const dir = landingsDir(stateDir);
  for (const name of listDir(dir)) {
    const [, id] = /^(.+)\.verdict\.json$/.exec(name) ?? [];
    const path = join(dir, name);
    const stats = id === undefined ? undefined : statOf(path);
    if (id === undefined || stats === undefined || isThere(trays, id)) continue;
    if (isExpired(nowMs - stats.mtimeMs, days)) fs.rmSync(path, { force: true });
  }
}
