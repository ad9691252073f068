/** Checks before a night of work: verify programs must succeed without changes, git trees be clean, and disks have room. */
import fs from "node:fs";
import { lastLine, runToItsEnd } from "../../agents/probe/ask-once.ts";
import { inheritedVariables } from "../../agents/program.ts";
import { bytesText } from "../../core/bytes-text.ts";
import type { Settings } from "../../core/settings.ts";
import { findCheckout } from "../../git/find-repository.ts";
import { openRepository } from "../../git/repository.ts";
import { gitList } from "../../git/run-git.ts";
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

/** Runs the `verify` programs of the waiting tasks in their folders. Tasks with the same programs and folder share one run. */
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

async function checkBase(base: Base, inherited: NodeJS.ProcessEnv): Promise<CheckResult> {
  const { cwd, verify, tasks } = base;
  const name = "verify";
  const waiting = counted(tasks, "waiting task");
  for (const argv of verify) {
    const shown = argv.join(" ");
    const env = { ...inherited, ...base.env };
    const end = await runToItsEnd({ argv, cwd, env, input: "", limitMs: VERIFY_MS_MAX });
    if (end.fault === undefined && end.exitCode === 0) continue;
    const said = lastLine(end.stderr) ?? lastLine(end.stdout) ?? "it printed nothing";
    const why = end.fault ?? `exit code ${end.exitCode}: ${said}`;
    return failing(
      name,
      `\`${shown}\` fails in ${cwd} before anything is changed, and would fail for ${waiting} (${why})`,
      "mend it first, or cancel these tasks",
    );
  }
  return ok(
    name,
    `${verify.map((argv) => `\`${argv.join(" ")}\``).join(", ")} in ${cwd}, for ${waiting}`,
  );
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
