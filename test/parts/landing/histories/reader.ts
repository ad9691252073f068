/**
 * Judges what is left of a history. It asks only git and reads records as files: it must not import anything of mailchute, so that it cannot
 * share a mistake with it.
 */
import { spawnSync } from "node:child_process";
import fs from "node:fs";
import { join } from "node:path";

export interface Place {
  /** The program. */
  git: string;
  env: NodeJS.ProcessEnv;
  repo: string;
  state: string;
  /** What agents, checks and the person wrote down. */
  notes: string;
  /** Without `refs/heads/`. */
  target: string;
}

/** What a person had before anything ran. */
export interface Before {
  refs: Map<string, string>;
  /** Value of the target; "": it was not there. */
  target: string;
  trees: Map<string, string>;
  stash: string;
}

interface Run {
  task: string;
  /** Objects that it had made. */
  made: string[];
  /** Objects that its worktree held at the last moment it wrote down; empty when it was killed in the middle of an action. */
  held: { what: string; object: string }[];
  /** It ended by itself with this exit code. */
  ended: number | undefined;
}

export function ask({ git, env, repo }: Place, ...args: string[]): string {
  const { status, stdout, stderr } = spawnSync(git, args, {
    cwd: repo,
    env,
    encoding: "utf8",
    maxBuffer: 1 << 28,
  });
  if (status !== 0) throw new Error(`git ${args.join(" ")}: exit ${status}: ${stderr}`);
  return stdout.replace(/\n$/, "");
}

const linesOf = (text: string): string[] => text.split("\n").filter((line) => line !== "");
const readLines = (path: string): string[] =>
  fs.existsSync(path) ? linesOf(fs.readFileSync(path, "utf8")) : [];

/** @param trees working trees of the person */
export function look(place: Place, trees: readonly string[]): Before {
  const refs = linesOf(ask(place, "for-each-ref", "--format=%(refname) %(objectname)"));
  const all = new Map(refs.map((line) => line.split(" ") as [string, string]));
  const target = all.get(`refs/heads/${place.target}`) ?? "";
  all.delete(`refs/heads/${place.target}`);
  return {
    refs: all,
    target,
    trees: new Map(trees.map((tree) => [tree, describeTree(place, tree)])),
    stash: all.get("refs/stash") ?? "",
  };
}

/** Its branch, its index, its changes and its untracked files. When it has the target checked out, its commits may move on. */
function describeTree(place: Place, tree: string): string {
  const there = { ...place, repo: tree };
  const branch = ask(there, "symbolic-ref", "HEAD");
  const changes = [
    ask(there, "status", "--porcelain", "--untracked-files=all"),
    ask(there, "diff"),
    ask(there, "diff", "--cached"),
  ];
  const untracked = linesOf(ask(there, "ls-files", "--others", "--exclude-standard"));
  const texts = untracked.map((name) => fs.readFileSync(join(tree, name), "utf8"));
  const isTarget = branch === `refs/heads/${place.target}`;
  const index = isTarget ? "" : ask(there, "ls-files", "--stage");
  return JSON.stringify([branch, ...changes, ...texts, index], undefined, 1);
}

/** @returns what is wrong, a sentence for each */
export function judge(place: Place, before: Before): string[] {
  const problems: string[] = [];
  const check = (name: string, work: () => string[]): void => {
    try {
      problems.push(...work().map((text) => `${name}: ${text}`));
    } catch (error) {
      problems.push(`${name}: ${(error as Error).message}`);
    }
  };
  const runs = readRuns(place.notes);
  check("lost", () => findLost(place, runs));
  check("target", () => followTarget(place, before));
  check("twice", () => findTwice(place, before));
  check("records", () => readRecords(place, runs));
  check("person", () => findTouched(place, before));
  check("git", () => {
    const said = ask(place, "fsck", "--connectivity-only", "--no-dangling");
    return said === "" ? [] : [said];
  });
  return problems;
}

export function readRuns(notes: string): Run[] {
  const dir = join(notes, "held");
  return fs
    .readdirSync(dir)
    .sort()
    .map((name) => {
      const run: Run = { task: "", made: [], held: [], ended: undefined };
      let open: Run["held"] = [];
      for (const line of readLines(join(dir, name))) {
        const [verb, what = "", object = ""] = line.split(" ");
        if (verb === "task") run.task = what;
        if (verb === "made") run.made.push(object);
        if (verb === "begin") {
          run.held = [];
          open = [];
        }
        if (verb === "held") open.push({ what, object });
        if (verb === "noted") run.held = open;
        if (verb === "ended") run.ended = Number(what);
      }
      return run;
    });
}

/** All that an agent had is below a branch or a save. */
function findLost(place: Place, runs: readonly Run[]): string[] {
  const kept = ["--glob=refs/heads/*", "--glob=refs/mailchute/*"];
  const objects = (...of: string[]): string[] =>
    linesOf(ask(place, "rev-list", "--objects", ...of)).map((line) => line.split(" ")[0] as string);
  const blobsOf = (tree: string): string[] =>
    linesOf(ask(place, "ls-tree", "-r", "--object-only", tree));
  const blobs = linesOf(
    ask(place, "for-each-ref", "--format=%(objectname)", "refs/heads", "refs/mailchute"),
  );
  const reachable = new Set([...objects(...kept), ...blobs]);
  // A later run may have changed ignored files, of which git knows nothing.
  const isOver = (run: Run, what: string): boolean =>
    what === "ignored" && runs.findLast(({ task }) => task === run.task) !== run;
  return runs.flatMap((run) =>
    [
      ...run.made.map((object) => ({ what: "made", object })),
      ...run.held.filter(({ what }) => !isOver(run, what)),
    ].flatMap(({ what, object }) => {
      // Which files an index had staged is no work, what they held is.
      const all = what === "index" ? blobsOf(object) : objects(object);
      const missing = all.filter((one) => !reachable.has(one));
      if (missing.length === 0) return [];
      if (what === "files" && isInSave(place, run.task, object)) return [];
      return [`${run.task} had ${what} ${object}, of which ${missing.length} objects are lost`];
    }),
  );
}

/** Whether a save has all these files, and besides them only ignored ones: `worktrees clean --ignored` takes those, too. */
function isInSave(place: Place, task: string, tree: string): boolean {
  const names = linesOf(
    ask(place, "for-each-ref", "--format=%(refname)", `refs/mailchute/${task}`),
  );
  return names
    .filter((name) => /\/\d+(?:\.\d+)?$/.test(name))
    .some((name) => {
      const changes = linesOf(ask(place, "diff-tree", "-r", "--name-status", tree, name));
      return changes.every((line) => /^A\t[^/]+\.log$/.test(line));
    });
}

/** The target only went forward, and each step is a person's, or was seen by a check that said yes. */
function followTarget(place: Place, before: Before): string[] {
  const { notes, target } = place;
  const now = ask(place, "for-each-ref", "--format=%(objectname)", `refs/heads/${target}`);
  if (now === before.target) return [];
  if (now === "") return ["it is gone"];
  const green = new Set(
    readLines(join(notes, "verified"))
      .map((line) => line.split(" "))
      .filter(([, , verdict]) => verdict === "green")
      .flatMap(([commit, tree]) => [`${commit}`, `tree ${tree}`]),
  );
  const problems: string[] = [];
  for (const [from, to] of stepsOf(place, before.target, now)) {
    if (from === "") {
      if (!isAncestor(place, to, "refs/heads/main")) problems.push(`it began at ${to}`);
      continue;
    }
    if (!isAncestor(place, from, to)) problems.push(`it went from ${from} to ${to}`);
    if (ask(place, "log", "-1", "--format=%cn", to) === "person") continue;
    const tree = ask(place, "rev-parse", `${to}^{tree}`);
    if (!green.has(to) || !green.has(`tree ${tree}`)) problems.push(`${to} was not checked`);
  }
  return problems;
}

/** From the reflog. git writes an entry before it moves the ref: the last one of a git that was killed may not have happened. */
function stepsOf(place: Place, start: string, end: string): [from: string, to: string][] {
  const path = ask(place, "rev-parse", "--git-path", `logs/refs/heads/${place.target}`);
  const entries = readLines(join(place.repo, path)).map((line) => line.split(" ").slice(0, 2));
  const none = /^0+$/;
  const steps: [string, string][] = [];
  let at = start;
  for (const [old = "", next = ""] of entries) {
    const from = none.test(old) ? "" : old;
    // The history begins after what a person did before.
    if (steps.length === 0 && from !== start) continue;
    while (steps.length > 0 && from !== at) at = (steps.pop() as [string, string])[0];
    if (from !== at) throw new Error(`the reflog jumps from ${at} to ${from}`);
    steps.push([from, next]);
    at = next;
  }
  while (steps.length > 0 && at !== end) at = (steps.pop() as [string, string])[0];
  if (at !== end) throw new Error(`the target is at ${end}, which its reflog does not say`);
  return steps;
}

function isAncestor({ git, env, repo }: Place, commit: string, of: string): boolean {
  return (
    spawnSync(git, ["merge-base", "--is-ancestor", commit, of], { cwd: repo, env }).status === 0
  );
}

/** No change is in the history of the target twice, and no line is in a file of it twice. */
function findTwice(place: Place, before: Before): string[] {
  const name = `refs/heads/${place.target}`;
  if (ask(place, "for-each-ref", name) === "") return [];
  const range = before.target === "" ? [name] : [name, `^${before.target}`];
  const log = ask(place, "log", "-p", "--no-merges", "--no-color", ...range);
  const { git, env, repo } = place;
  const { stdout } = spawnSync(git, ["patch-id", "--stable"], {
    cwd: repo,
    env,
    input: `${log}\n`,
    encoding: "utf8",
  });
  const patches = linesOf(stdout).map((line) => line.split(" ")[0] as string);
  const found = duplicatesOf(patches).map((patch) => `the patch ${patch}`);
  const grep = spawnSync(git, ["grep", "-I", "-o", "tok-[^ ]*", name], {
    cwd: repo,
    env,
    encoding: "utf8",
  });
  return [...found, ...duplicatesOf(linesOf(grep.stdout)).map((line) => `the line ${line}`)];
}

function duplicatesOf(all: readonly string[]): string[] {
  return [...new Set(all.filter((one, index) => all.indexOf(one) !== index))];
}

interface SomeRecord {
  task_id: string;
  status: string;
  landing?: string;
  base?: string;
  output?: { landing?: string; commit?: string };
}

/** Each task has one record; what a landing says is so. */
function readRecords(place: Place, runs: readonly Run[]): string[] {
  const problems: string[] = [];
  const mailbox = join(place.state, "mailbox");
  const records = ["outbox", "failed"].flatMap((tray) =>
    fs
      .readdirSync(join(mailbox, tray))
      .filter((name) => /_(?:result|error)\.json$/.test(name))
      .map((name) => JSON.parse(fs.readFileSync(join(mailbox, tray, name), "utf8")) as SomeRecord),
  );
  for (const id of duplicatesOf(records.map(({ task_id }) => task_id)))
    problems.push(`${id} has two records`);
  const byId = new Map(records.map((record) => [record.task_id, record]));
  for (const tray of ["inbox", "processing"])
    for (const name of fs.readdirSync(join(mailbox, tray)))
      problems.push(`${tray} still has ${name}`);
  const tasks = readLines(join(place.notes, "tasks"));
  for (const id of tasks) {
    const record = byId.get(id);
    if (record === undefined) problems.push(`${id} has no record`);
    if (record?.landing === "pending" && !byId.has(`${id}.land`))
      problems.push(`${id} is to land, and ${id}.land has no record`);
    problems.push(...checkLanding(place, byId.get(`${id}.land`), record, lastOf(runs, id)));
  }
  return problems;
}

/** The files that the agent left when it ended last. */
function lastOf(runs: readonly Run[], id: string): string | undefined {
  const last = runs.filter(({ task }) => task === id).at(-1);
  return last?.held.find(({ what }) => what === "files")?.object;
}

function checkLanding(
  place: Place,
  landing: SomeRecord | undefined,
  record: SomeRecord | undefined,
  files: string | undefined,
): string[] {
  const { landing: said, commit = "" } = landing?.output ?? {};
  const id = record?.task_id ?? "";
  if (said === "nothing" && files !== undefined) {
    const base = ask(place, "rev-parse", `${record?.base}^{tree}`);
    return base === files ? [] : [`${id}.land says that there is nothing to land`];
  }
  if (said !== "landed") return [];
  const problems: string[] = [];
  if (!isAncestor(place, commit, `refs/heads/${place.target}`))
    problems.push(`${id}.land says that ${commit} has landed`);
  const text = ask(place, "log", "-1", "--format=%B", `refs/mailchute/${id}/landing`);
  const tip = /^tip ([0-9a-f]+)$/m.exec(text)?.[1] ?? "";
  if (files !== undefined && ask(place, "rev-parse", `${tip}^{tree}`) !== files)
    problems.push(`${id} landed ${tip}, which is not what its agent left (${files})`);
  return problems;
}

/** A person's branches, tags, stash entries, working trees and indexes are as they were. */
function findTouched(place: Place, before: Before): string[] {
  const problems: string[] = [];
  const now = look(place, [...before.trees.keys()]);
  const ours =
    /^refs\/(?:stash$|mailchute\/|mailchute-proof\/|heads\/(?:mailchute\/|agent-|other-))/;
  for (const [name, value] of now.refs)
    if (!ours.test(name) && before.refs.get(name) !== value)
      problems.push(`${name} was ${before.refs.get(name) ?? "not there"} and is ${value}`);
  for (const name of before.refs.keys()) if (!now.refs.has(name)) problems.push(`${name} is gone`);
  const stashes = linesOf(ask(place, "reflog", "show", "--format=%H", "refs/stash"));
  if (!stashes.includes(before.stash)) problems.push("the stash entry is gone");
  for (const [tree, text] of before.trees)
    if (now.trees.get(tree) !== text)
      problems.push(`the tree ${tree} was ${text} and is ${now.trees.get(tree)}`);
  const worktrees = linesOf(ask(place, "worktree", "list", "--porcelain"))
    .filter((line) => line.startsWith("worktree "))
    .map((line) => line.slice("worktree ".length));
  for (const path of worktrees)
    if (!before.trees.has(path)) problems.push(`the worktree ${path} is left`);
  return problems;
}
