/** Shows the work that tasks have left on their branches, and the state of its landing. Reads only. */
import { type Diffstat, landingIdOf } from "../core/landing.ts";
import { foldId } from "../core/names.ts";
import { headlineOf } from "../core/outcome.ts";
import { landingFileOf, landingsDir, type StateTree } from "../core/state-tree.ts";
import type { DependencyState } from "../core/unmet.ts";
import { counted } from "../text/render.ts";
import { lookForTask } from "./find-task.ts";
import { namesIn, readJsonObject, textOf } from "./scan.ts";

export interface LandingView {
  /** The task that lands the work. */
  id: string;
  state: "open" | "landed" | "failed";
  /** What the landing waits for, why the work could not land, or where the work is. */
  why: string;
  /** The commit that has landed. */
  commit?: string;
}

/** The work that a task has left on its branch. */
export interface Work extends Diffstat {
  task_id: string;
  title: string;
  /** The task that lands it. */
  landing_id: string;
  /** `branch`: it stays there until a person lands it. */
  state: LandingView["state"] | "branch";
  why: string;
  branch: string;
  /** The commit at which the branch began. */
  base: string;
  target: string;
  /** The git directory of its repository. */
  repository: string;
  /** The commit that has landed; "" for other work. */
  commit: string;
  /** Whether programs check it before it lands. */
  checked: boolean;
}

type Json = Readonly<Record<string, unknown>>;

/** At most so many orders are read. */
const WORK_MAX = 1000;
const ORDER_ENDING = ".order.json";

/** Why tasks that depend on this one must still wait for its landing; undefined when its work has landed, or has no landing. */
export function explainUnlanded(tree: StateTree, id: string): DependencyState | undefined {
  const { state, why } = lookForLanding(tree, id) ?? {};
  if (state === "failed") return { is: "stuck", how: `did not land: ${why}` };
  return state === "open" ? { is: "moving", how: `has not landed: ${why}` } : undefined;
}

/** Undefined when the task has no landing. @param record of the task; read when it is left out */
export function lookForLanding(
  tree: StateTree,
  id: string,
  record?: Json,
): LandingView | undefined {
  const order = orderOf(tree, id, record);
  return order === undefined ? undefined : landingOf(tree, id, order);
}

/** The work of this task; undefined when it has left none. @param record as above */
export function lookForWork(tree: StateTree, id: string, record?: Json): Work | undefined {
  const order = orderOf(tree, id, record);
  if (order === undefined) return undefined;
  const landing = landingOf(tree, id, order);
  const { files, insertions, deletions } = (order["diffstat"] ?? {}) as Partial<Diffstat>;
  return {
    task_id: id,
    title: textOf(order["title"], id),
    landing_id: landing?.id ?? landingIdOf(id),
    state: landing?.state ?? "branch",
    why: landing?.why ?? "",
    branch: textOf(order["branch"]),
    base: textOf(order["base"]),
    target: textOf(order["target"]),
    repository: textOf(order["repository"], ""),
    commit: landing?.commit ?? "",
    checked: (order["checks"] as Json | undefined)?.["verify"] !== undefined,
    files: files ?? 0,
    insertions: insertions ?? 0,
    deletions: deletions ?? 0,
  };
}

const STATES: Readonly<Record<Work["state"], string>> = {
  landed: "landed on",
  open: "on its way to",
  failed: "could not land on",
  branch: "on its branch, for",
};

/** `landed on main: 2 files, +3 -1`. */
export function workText(work: Work): string {
  return `${STATES[work.state]} ${work.target}: ${changeText(work)}`;
}

/** `2 files, +3 -1`. */
export function changeText({ files, insertions, deletions }: Diffstat): string {
  return `${counted(files, "file")}, +${insertions} -${deletions}`;
}

/** All work that has an order, sorted by the id of the task, as git says now: see `recheckLanded`. */
export async function readWork(tree: StateTree): Promise<Work[]> {
  return recheckLanded(listWork(tree));
}

/** The same, as the files say. */
export function listWork(tree: StateTree): Work[] {
  return idsWithOrder(tree)
    .slice(0, WORK_MAX)
    .flatMap((id) => lookForWork(tree, id) ?? []);
}

/** Like `lookForLanding`, as git says now: see `recheckLanded`. */
export async function askForLanding(
  tree: StateTree,
  id: string,
  record?: Json,
): Promise<LandingView | undefined> {
  const landing = lookForLanding(tree, id, record);
  const work = landing?.state === "landed" ? lookForWork(tree, id, record) : undefined;
  if (landing === undefined || work === undefined) return landing;
  const [{ state, why } = work] = await recheckLanded([work]);
  return state === "failed" ? { ...landing, state, why } : landing;
}

type Landed = Pick<Work, "task_id" | "state" | "why" | "target" | "repository" | "commit">;

/**
 * Asks git whether landed work is still on a branch, because a person may have deleted the target or set it back. Work that is on none
 * counts as failed. If git cannot be asked, the work stays as it is.
 */
export async function recheckLanded<T extends Landed>(works: readonly T[]): Promise<T[]> {
  const landed = works.filter(({ state, commit }) => state === "landed" && commit !== "");
  if (landed.length === 0) return [...works];
  const { commitsOnNoBranch } = await import("../git/on-branches.ts");
  const byTarget = new Map<string, T[]>();
  for (const one of landed) {
    const key = `${one.repository}\0${one.target}`;
    byTarget.set(key, [...(byTarget.get(key) ?? []), one]);
  }
  const lost = new Set<string>();
  for (const [key, all] of byTarget) {
    const [repository = "", target = ""] = key.split("\0");
    const commits = all.map(({ commit }) => commit);
    for (const commit of await commitsOnNoBranch(repository, target, commits)) lost.add(commit);
  }
  return works.map((one) =>
    lost.has(one.commit) ? { ...one, state: "failed" as const, why: lostText(one) } : one,
  );
}

function lostText({ task_id: id, target, commit }: Landed): string {
  return `it landed on ${target} as ${commit.slice(0, 12)}, which is on no branch any more: mailchute land ${id} --again`;
}

/** The ids of the tasks that land work or have landed it, including work of earlier runs. */
export function readLandingIds(tree: StateTree): Set<string> {
  return new Set(idsWithOrder(tree).map(landingIdOf));
}

/** The completed tasks whose work has not landed, by folded id. Tasks that depend on one of them wait for its landing. */
export function readUnlanded(tree: StateTree): Map<string, DependencyState> {
  return new Map(
    idsWithOrder(tree).flatMap((id): [string, DependencyState][] => {
      const standing = explainUnlanded(tree, id);
      return standing === undefined ? [] : [[foldId(id), standing]];
    }),
  );
}

function idsWithOrder(tree: StateTree): string[] {
  return [...namesIn(landingsDir(tree.dir))]
    .flatMap((name) => (name.endsWith(ORDER_ENDING) ? [name.slice(0, -ORDER_ENDING.length)] : []))
    .sort();
}

/** The order of the task's work; undefined for an order of an earlier run. If the task's record was taken away, the order still counts. */
function orderOf(tree: StateTree, id: string, record?: Json): Json | undefined {
  const order = readJsonObject(landingFileOf(tree.dir, id, "order"));
  if (order === undefined) return undefined;
  const of = record ?? readJsonObject(lookForTask(tree, id)?.path ?? "");
  return of === undefined || of["lease"] === order["lease"] ? order : undefined;
}

function landingOf(tree: StateTree, id: string, order: Json): LandingView | undefined {
  const landing = landingIdOf(id);
  const place = lookForTask(tree, landing);
  const sent = readJsonObject(landingFileOf(tree.dir, id, "sent"));
  if (sent?.["lease"] !== order["lease"])
    // A branch lands only when a person asks for it.
    return order["land"] === "branch"
      ? undefined
      : { id: landing, state: "open", why: "it is about to be submitted" };
  const end = place === undefined ? undefined : readJsonObject(place.path);
  if (place?.state === "failed")
    return { id: landing, state: "failed", why: headlineOf(textOf(end?.["error"], "")) };
  if (place !== undefined && place.state !== "done") {
    const { wait } = stateOf(tree, id, order);
    const why = (wait as { why?: unknown } | null | undefined)?.why;
    return { id: landing, state: "open", why: typeof why === "string" ? why : place.state };
  }
  if (place === undefined && stateOf(tree, id, order)["landed"] !== true)
    return { id: landing, state: "failed", why: `its record was removed; mailchute land ${id}` };
  const output = end?.["output"] as Json | null | undefined;
  const commit = textOf(output?.["commit"] ?? stateOf(tree, id, order)["commit"], "");
  return { id: landing, state: "landed", why: textOf(end?.["verdict_reason"], ""), commit };
}

/** The state of this landing; empty when the file is about an earlier run. */
function stateOf(tree: StateTree, id: string, order: Json): Json {
  const found = readJsonObject(landingFileOf(tree.dir, id, "state")) ?? {};
  return found["lease"] === order["lease"] ? found : {};
}
