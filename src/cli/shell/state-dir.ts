/** Finds the state tree of a command line: the tree that it names, or `state` in this directory or the nearest one above. Reads only. */
import os from "node:os";
import { dirname, join, resolve } from "node:path";
import { listDir } from "../../host/list-dir.ts";
import { statOf, tryReadText, tryStatOf } from "../../host/regular-file.ts";
import { ErrUsage } from "./command-spec.ts";
import { treeOfName } from "./tree-names.ts";

export interface StatePlace {
  dir: string;
  /** What names the tree: `--state` or `MAILCHUTE_STATE`. Otherwise it was found in this directory or above. */
  from: "flag" | "environment" | "here" | "above";
}

const NAME = "state";
/** A directory with one of these is a state tree. The name alone is not enough, because many projects have a directory named `state`. */
const MARKS = [
  ...["inbox", "processing", "outbox", "failed"].map((tray) => join("mailbox", tray)),
  join("control", "inbox"),
  "roadmap.yaml",
  "config.yaml",
  "supervisor.json",
  "control.json",
  join("analytics", "supervisor_lifecycle.jsonl"),
];

/** See `parts/plan/file/replaced-files.ts`. */
const REPLACED_PLAN = /^roadmap\.yaml\..+\.old$/;

/**
 * Searches upwards as git does, but not above the home directory, and not on another file system. A tree in a directory above counts
 * only when we own it: a user who can write into its inbox can run programs as us.
 * @throws ErrUsage for `--state ""`: an unset shell variable must not select another tree
 */
export function findStateDir(
  flag: string | undefined,
  env: NodeJS.ProcessEnv,
  cwd: string,
): StatePlace {
  if (flag === "")
    throw new ErrUsage(
      "--state is empty",
      "name a directory, or leave it out; perhaps a variable of the shell is not set",
    );
  if (flag !== undefined) return { dir: namedTree(flag, env, cwd), from: "flag" };
  const named = env["MAILCHUTE_STATE"];
  if (named !== undefined && named !== "")
    return { dir: namedTree(named, env, cwd), from: "environment" };
  const here = join(cwd, NAME);
  const above = isTree(here) ? undefined : findAbove(cwd);
  return above === undefined ? { dir: here, from: "here" } : { dir: above, from: "above" };
}

/** A tree at this path comes before a tree with this name, so that a new name breaks no old script. */
function namedTree(text: string, env: NodeJS.ProcessEnv, cwd: string): string {
  const here = resolve(cwd, text);
  return isTree(here) ? here : (treeOfName(text, env) ?? here);
}

/** Whether a directory is a state tree. True also for a directory that cannot be read. */
export function isTree(dir: string): boolean {
  return MARKS.some((mark) => isThere(join(dir, mark))) || hasReplacedPlan(dir);
}

/** While the plan is replaced, for some microseconds only its old file is there. A plan may be all that a tree has. */
function hasReplacedPlan(dir: string): boolean {
  return listDir(join(dir, ".tmp")).some((name) => REPLACED_PLAN.test(name));
}

/** Whether this process belongs to the run of a task. */
export function isInsideRun(env: NodeJS.ProcessEnv): boolean {
  return (env["MAILCHUTE_TASK_ID"] ?? "") !== "";
}

/**
 * Whether config.yaml may name plugins, without reading it as YAML. False for a file of another user, whose code would run as us, and
 * inside a run.
 */
export function mayHavePlugins(dir: string, env: NodeJS.ProcessEnv): boolean {
  const path = join(dir, "config.yaml");
  const owner = tryStatOf(path)?.uid;
  if (isInsideRun(env) || (owner !== 0 && owner !== process.getuid?.())) return false;
  return /^[\s{,]*["']?plugins["']?\s*:/m.test(tryReadText(path) ?? "");
}

/** A text after the path of a tree that says how the tree was found; empty when it is in this directory, or was named. */
export function whereFrom({ from }: Pick<StatePlace, "from">): string {
  return from === "above" ? " (found above this directory)" : "";
}

function findAbove(cwd: string): string | undefined {
  const home = os.homedir();
  const dev = statOf(cwd)?.dev;
  for (let at = cwd; at !== home && dirname(at) !== at; ) {
    at = dirname(at);
    if (tryStatOf(at)?.dev !== dev) return undefined;
    const dir = join(at, NAME);
    if (tryStatOf(dir)?.uid === process.getuid?.() && isTree(dir)) return dir;
  }
  return undefined;
}

function isThere(path: string): boolean {
  try {
    return statOf(path) !== undefined;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EACCES";
  }
}
