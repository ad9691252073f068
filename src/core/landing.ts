/** What becomes of the work on a task's branch: names and rules that workers, parts and commands share. Pure. */
import { derivedId, shortHash } from "./derived-id.ts";

/**
 * `branch`: it stays on its branch until a person lands it. `merge`: it is brought into the target branch. `exec`: a program of the user
 * takes it over. `none`: it is not meant to land.
 */
export const LAND_MODES = ["none", "branch", "merge", "exec"] as const;
export type LandMode = (typeof LAND_MODES)[number];

/** The branch that collects work by default. No worktree has it checked out. */
export const DEFAULT_TARGET = "mailchute/integration";

/** How work lands: fields of a task, and settings of an agent. */
export interface LandFields {
  land?: LandMode;
  /** A branch, without `refs/heads/`. */
  target?: string;
  /** Where work with `merge` begins: with what has landed on the target, or at the commit that is checked out. Default: target. */
  base?: "target" | "checkout";
  /** The program of `exec`, with its arguments. */
  land_command?: string[];
  /** Lets a landing move a branch that a person has checked out, if that tree is clean. */
  land_into_checkout?: boolean;
  /** Another agent, whose verdict on the work must be `pass` before it lands. */
  review_by?: string;
  /** Patterns of files that the work may not change by itself; one that begins with `+` also forbids new files. */
  protect?: string[];
  /** The landing checks the work as the target would have it, with nothing that the run left. */
  verify_from?: "target";
  /** `verify`, or this program, must fail without the work and pass with it. */
  prove?: true | string[];
}

/** What a run has left on its branch, as its record says. */
export interface WorkFacts {
  /**
   * `pending`: the task `<id>.land` brings it into the target. `nothing`: the run changed nothing. `landed`: it has landed on the other
   * machine that ran the task.
   */
  landing: "pending" | "branch" | "nothing" | "landed";
  branch: string;
  /** The commit at which the branch began. */
  base: string;
  target: string;
  diffstat: Diffstat;
}

/** Where the work of a run is that its branch lacks, as its record says. */
export interface KeptWork {
  /** The ref of the save that has it. */
  work_saved?: string;
  /** What only the worktree has: files, and repositories inside. At most ten of them. */
  work_left?: string[];
}

export interface Diffstat {
  files: number;
  insertions: number;
  deletions: number;
}

/** The landing fields of a task. For a missing field it takes the setting of its agent. */
export function landFieldsOf(task: LandFields, agent: LandFields): LandFields & { land: LandMode } {
  const both: LandFields = { ...pick(agent), ...pick(task) };
  return { ...both, land: both.land ?? "branch" };
}

/**
 * The branch at which the work of a task begins, without `refs/heads/`: the target on which it lands by itself, so that conflicts come
 * early and are small. Undefined when the work begins at the commit of its `cwd`.
 */
export function branchToBuildOn(task: LandFields, agent: LandFields): string | undefined {
  const { land, target = DEFAULT_TARGET, base } = landFieldsOf(task, agent);
  return land === "merge" && base !== "checkout" ? target : undefined;
}

export const LAND_FIELDS = [
  "land",
  "target",
  "base",
  "land_command",
  "land_into_checkout",
  "review_by",
  "protect",
  "verify_from",
  "prove",
] as const satisfies readonly (keyof LandFields)[];

function pick(from: LandFields): LandFields {
  return Object.fromEntries(
    LAND_FIELDS.flatMap((name) => (from[name] === undefined ? [] : [[name, from[name]]])),
  );
}

/**
 * How far a task finishes the work of another one: 1 for a landing; 2 for one that has begun, and waits for its next try (only its caller
 * knows that); 3 for a review or a mending task, because a landing waits for it. Undefined for new work.
 */
export function finishingOf(task: Readonly<Record<string, unknown>>): 1 | 3 | undefined {
  if (typeof (task["review_of"] ?? task["fix_of"]) === "string") return 3;
  return typeof task["landing_of"] === "string" ? 1 : undefined;
}

/** The id of the task that lands the work of another one. */
export function landingIdOf(id: string): string {
  return derivedId(id, ".land");
}

/** The id of the task that has an agent mend work that could not land. @param n from 1 */
export function fixIdOf(id: string, n: number): string {
  return derivedId(id, `.fix-${n}`);
}

/** The id of the task that reviews work at this commit. There is one for each commit, so it is reviewed once. */
export function reviewIdOf(id: string, commit: string): string {
  return derivedId(id, `.review-${commit.slice(0, 12)}`);
}

/** The gate at which a landing waits. */
export function landingGateOf(id: string): string {
  return `land-${shortHash(id.toLowerCase())}`;
}

/** True for a name that only `landingGateOf` and `landingGroupOf` make. It tells a person nothing. */
export function isLandingGate(gate: string): boolean {
  return /^land-[0-9a-f]{16}$/.test(gate);
}

/** The group of all landings of a repository: only one of them runs at a time. */
export function landingGroupOf(repository: string): string {
  return `land-${shortHash(repository)}`;
}

export const LANDING_GROUP = /^land-[0-9a-f]{16}$/;
