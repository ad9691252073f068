/** Checks before a night of work: verify programs must succeed without changes, git trees be clean, and disks have room. */
import fs from "node:fs";
import os from "node:os";
import { join } from "node:path";
import { lastLine, runToItsEnd } from "../../agents/probe/ask-once.ts";
import { inheritedVariables } from "../../agents/program.ts";
import { bytesText } from "../../core/bytes-text.ts";
import { messageOf } from "../../core/errors.ts";
import type { Settings } from "../../core/settings.ts";
import { makeCleanCheckout, removeCleanCheckout } from "../../git/clean-checkout.ts";
import { findCheckout } from "../../git/find-repository.ts";
import { openRepository } from "../../git/repository.ts";
import { gitList } from "../../git/run-git.ts";
import { startOf } from "../../git/start-of-work.ts";
import { statOf } from "../../host/regular-file.ts";
import { counted } from "../../text/render.ts";
import { type CheckResult, failing, ok, warned } from "./check.ts";
import type { Base, WaitingWork } from "./waiting-work.ts";

const BASES_MAX = 20;
/** Time limits for one verify program and for all of them (ms). */
const VERIFY_MS_MAX = 10 * 60_000;
const ALL_MS_MAX = 30 * 60_000;
const GIT_MS_MAX = 30_000;
/** A warning is given below this, because builds of a night may fill the rest. */
const ROOM_WANTED_BYTES = 2 * 1024 ** 3;

/** Runs the `verify` programs of the waiting tasks where nothing is changed yet. Tasks with the same programs and base share one run. */
export async function checkBases(
  { bases, tasks, isAll }: WaitingWork,
  settings: Settings,
  env: NodeJS.ProcessEnv,
): Promise<CheckResult[]> {
  const name = "verify";
  const results: CheckResult[] = [];
  const untilMs = performance.now() + ALL_MS_MAX;
  let run = 0;
  for (const base of bases.slice(0, BASES_MAX)) {
    if (performance.now() >= untilMs) break;
    run += 1;
    results.push(await checkBase(base, inheritedVariables(env, settings)));
  }
  if (run < bases.length)
    results.push(
      warned(name, `${bases.length - run} more kinds of verify were not run`, "run them yourself"),
    );
  if (!isAll)
    results.push(
      warned(name, `only ${tasks} waiting tasks were looked at`, "nothing, if they are alike"),
    );
  if (results.length > 0) return results;
  return [
    ok(name, tasks === 0 ? "no task waits" : `${counted(tasks, "waiting task")}, none with verify`),
  ];
}

/** A check that is red in a clean checkout is tried once more, so that one which is red and green by turns is said to be flaky. */
async function checkBase(base: Base, inherited: NodeJS.ProcessEnv): Promise<CheckResult> {
  const { cwd, verify, tasks } = base;
  const name = "verify";
  const waiting = counted(tasks, "waiting task");
  const env = { ...inherited, ...base.env };
  let faults: (Fault | undefined)[];
  let where = cwd;
  try {
    faults = await atBase(base, async (there, commit) => {
      if (commit !== undefined) where = `a clean checkout of ${commit.slice(0, 12)} of ${cwd}`;
      const unready = await faultOf(base.worktree?.setup ?? [], there, env);
      if (unready !== undefined) return [unready, unready];
      const first = await faultOf(verify, there, env);
      if (first === undefined || commit === undefined) return [first, first];
      return [first, await faultOf(verify, there, env)];
    });
  } catch (error) {
    return warned(name, `${cwd} cannot be checked out: ${messageOf(error)}`, "see what git says");
  }
  const [fault, again] = faults;
  const shown = verify.map((argv) => `\`${argv.join(" ")}\``).join(", ");
  if (fault === undefined) return ok(name, `${shown} in ${where}, for ${waiting}`);
  if (again === undefined)
    return warned(
      name,
      `${shown} in ${where} is flaky: it failed once and succeeded once, and would fail by turns for ${waiting} (${fault.why})`,
      "mend it first: an agent cannot tell whose fault it is",
    );
  return failing(
    name,
    `\`${fault.shown}\` fails in ${where} before anything is changed, and would fail for ${waiting} (${fault.why})`,
    "mend it first, or cancel these tasks",
  );
}

/** Runs this where a run would begin: in its folder, or in a clean checkout of the commit at which its worktree begins. @throws ErrGit */
async function atBase<T>(
  { cwd, worktree }: Base,
  run: (there: string, commit?: string) => Promise<T>,
): Promise<T> {
  if (worktree === undefined) return run(cwd);
  const repository = await openRepository(cwd);
  const commit = await startOf(repository, cwd, worktree.buildsOn);
  const dir = fs.realpathSync(fs.mkdtempSync(join(os.tmpdir(), "mailchute-base-")));
  try {
    const { path } = await makeCleanCheckout(repository, join(dir, "base"), commit);
    return await run(join(path, repository.prefix), commit);
  } finally {
    await removeCleanCheckout(repository, join(dir, "base"));
    fs.rmSync(dir, { recursive: true, force: true, maxRetries: 5 });
  }
}

interface Fault {
  shown: string;
  why: string;
}

/** How the first of these programs fails; undefined when all succeed. */
async function faultOf(
  programs: readonly (readonly string[])[],
  cwd: string,
  env: NodeJS.ProcessEnv,
): Promise<Fault | undefined> {
  for (const argv of programs) {
    const end = await runToItsEnd({ argv, cwd, env, input: "", limitMs: VERIFY_MS_MAX });
    if (end.fault === undefined && end.exitCode === 0) continue;
    const said = lastLine(end.stderr) ?? lastLine(end.stdout) ?? "it printed nothing";
    return { shown: argv.join(" "), why: end.fault ?? `exit code ${end.exitCode}: ${said}` };
  }
  return undefined;
}

/** Warns of uncommitted changes, because they would be mixed with the changes of an agent. */
export async function checkTrees({ folders }: WaitingWork): Promise<CheckResult[]> {
  const results: CheckResult[] = [];
  for (const cwd of folders) {
    const name = "git tree";
    if (!fs.existsSync(cwd)) {
      results.push(failing(name, `${cwd} is not there, and tasks are to run in it`, "make it"));
      continue;
    }
    const changed = await countChanges(cwd).catch(() => undefined);
    // No repository, or no git: there is nothing to say.
    if (changed === undefined) continue;
    if (changed === 0) results.push(ok(name, `${cwd} is clean`));
    else
      results.push(
        warned(
          name,
          `${cwd} has ${counted(changed, "uncommitted change")}: an agent's changes are mixed with them`,
          "commit or stash them first",
        ),
      );
  }
  return results;
}

/** Undefined for a bare repository. @throws ErrGit */
async function countChanges(cwd: string): Promise<number | undefined> {
  const repository = await openRepository(cwd);
  const found = findCheckout(cwd);
  if (found?.top === undefined) return undefined;
  const asked = ["status", "--porcelain", "--no-renames", "-z"];
  const call = { cwd: found.top, gitDir: found.gitDir, env: repository.env, limitMs: GIT_MS_MAX };
  return (await gitList(call, ...asked)).length;
}

/** One line for each disk that the night works on. */
export function checkRoom({ folders }: WaitingWork, settings: Settings): CheckResult[] {
  const seen = new Set<number>();
  const results: CheckResult[] = [];
  for (const folder of folders) {
    const dev = statOf(folder)?.dev;
    if (dev === undefined || seen.has(dev)) continue;
    seen.add(dev);
    const { bavail, bsize } = fs.statfsSync(folder);
    const free = bavail * bsize;
    const shown = `${bytesText(free)} free in ${folder}`;
    const name = "room";
    if (free < settings.free_bytes_min) results.push(failing(name, shown, "make room"));
    else if (free < ROOM_WANTED_BYTES)
      results.push(warned(name, `${shown}: builds of a night may fill it`, "make room"));
    else results.push(ok(name, shown));
  }
  return results;
}
