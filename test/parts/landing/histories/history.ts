/** Plays one history: a real pool and a real repository, agents, a person and kills as the seed says, until everything has settled. */
import { type ChildProcess, spawn } from "node:child_process";
import fs from "node:fs";
import os from "node:os";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { type CountingGit, countingGit, GIT } from "../../../support/counting-git.ts";
import { GIT_ENVIRONMENT, newRepository } from "../../../support/git-repository.ts";
import { newPool, type Pool, QUICK_CONFIG } from "../../../support/pool.ts";
import type { OnEnd } from "../../../support/temp-dir.ts";
import { timeLimitMs } from "../../../support/time-limit.ts";
import { type HistoryPlan, planOf, type TaskPlan } from "./plan.ts";
import { type Before, judge, look, type Place } from "./reader.ts";

const fixture = (name: string): string => fileURLToPath(new URL(name, import.meta.url));
/** Of one start of a supervisor, on a machine that does other things, too (ms). */
const START_MS_MAX = 90_000;
const STARTS_MAX = 12;

export interface HistoryOptions {
  onEnd: OnEnd;
  /** A script of a git that is broken on purpose. */
  brokenGit?: string;
  /** The launcher of a mailchute that is broken on purpose. */
  launcher?: string;
}

export interface HistoryResult {
  problems: string[];
  dir: string;
  kills: number;
  starts: number;
  /** Steps of the target that were landings. */
  landed: number;
  /** Landings of work that was checked together with other work. */
  together: number;
}

interface World {
  plan: HistoryPlan;
  pool: Pool;
  git: CountingGit;
  place: Place;
  before: Before;
  starts: number;
}

export async function playHistory(seed: number, options: HistoryOptions): Promise<HistoryResult> {
  const world = newWorld(planOf(seed), options);
  const { plan, pool, place } = world;
  const problems: string[] = [];
  try {
    await settle(world, plan.killAllAtMs, dropAll(world));
    if (await decideAsPerson(world)) await settle(world, []);
    await cleanUp(world);
    problems.push(...judge(place, world.before));
  } catch (error) {
    problems.push(`it did not come to its end: ${(error as Error).message}`);
  }
  return {
    problems,
    dir: pool.dir,
    kills: world.git.calls().filter(({ isKilled }) => isKilled).length,
    starts: world.starts,
    landed: pool.results().filter(({ output }) => isLanded(output)).length,
    together: pool
      .results()
      .filter(({ verdict_reason: why }) => String(why).includes("checked together with")).length,
  };
}

function isLanded(output: unknown): boolean {
  return (output as { landing?: string } | null)?.landing === "landed";
}

function newWorld(plan: HistoryPlan, options: HistoryOptions): World {
  const env: Record<string, string> = { ...GIT_ENVIRONMENT };
  const config = `${QUICK_CONFIG}processes: 1
env_allow: [HISTORY, REPO, GIT, TARGET]
agents: [{name: coder, kind: exec, program: sh, args: [${JSON.stringify(fixture("agent.sh"))}], worktree: auto}]
`;
  const { onEnd, launcher, brokenGit } = options;
  const parent = hasMemoryDisk() ? "/dev/shm" : os.tmpdir();
  const pool = newPool({ config, env, onEnd, parent, ...(launcher ? { launcher } : {}) });
  const notes = join(pool.dir, "notes");
  for (const name of ["", "held", "runs", "scripts", "moves", "signals"])
    fs.mkdirSync(join(notes, name));
  fs.copyFileSync(fixture("person.sh"), join(notes, "person.sh"));
  const repo = join(pool.dir, "repo");
  Object.assign(env, {
    HISTORY: notes,
    REPO: repo,
    GIT,
    TARGET: plan.target,
    XDG_STATE_HOME: join(pool.dir, "user"),
  });
  const git = countingGit(join(pool.dir, "counted"), env, brokenGit);
  writePlan(plan, notes);
  if (plan.gather > 0) fs.writeFileSync(join(notes, "gather"), `${plan.gather} ${pool.inbox}\n`);
  if (plan.kills.length > 0) git.arm(plan.kills.map(({ call, ...how }) => ({ at: call, ...how })));
  const gitEnvironment = { ...process.env, ...GIT_ENVIRONMENT };
  const { state } = pool;
  const place = { git: GIT, env: gitEnvironment, repo, state, notes, target: plan.target };
  const trees = makeRepository(plan, pool.dir);
  return { plan, pool, git, place, before: look(place, trees), starts: 0 };
}

function hasMemoryDisk(): boolean {
  try {
    const { bavail, bsize } = fs.statfsSync("/dev/shm");
    return bavail * bsize > 1 << 30;
  } catch {
    return false;
  }
}

function writePlan({ tasks, moves, signals }: HistoryPlan, notes: string): void {
  fs.writeFileSync(join(notes, "tasks"), tasks.map(({ id }) => `${id}\n`).join(""));
  const script = (name: string, acts: readonly string[]): void =>
    fs.writeFileSync(join(notes, "scripts", name), `${acts.join("\n")}\n`);
  for (const { id, runs, mends } of tasks) {
    // A run that was killed does not count as an attempt of the plan: it does the same again.
    for (let run = 1; run <= 8; run++)
      script(`${id}.${run}`, runs[Math.min(run, runs.length) - 1] ?? []);
    for (let fix = 1; fix <= 2; fix++)
      for (let run = 1; run <= 4; run++)
        script(`${id}.fix-${fix}.${run}`, mends[Math.min(run, mends.length) - 1] ?? []);
  }
  for (const { check, file } of moves)
    fs.writeFileSync(join(notes, "moves", String(check)), `${file}\n`);
  for (const check of signals) fs.writeFileSync(join(notes, "signals", String(check)), "");
}

/** A repository with all that a person may have in one. @returns the person's working trees */
function makeRepository(plan: HistoryPlan, dir: string): string[] {
  const repository = newRepository(join(dir, "repo"));
  const tree = repository.dir;
  const git = (...args: string[]): string => repository.git(...args);
  const lines = Array.from({ length: 12 }, (_, index) => `line ${index}\n`).join("");
  repository.commit({ "shared-0.txt": lines, "shared-1.txt": lines }, "shared files");
  const other = join(dir, "other");
  git("worktree", "add", "-q", "-b", "feature", other);
  fs.writeFileSync(join(other, "shared-0.txt"), "a person writes\n");
  if (plan.isThere && !plan.isCheckedOut) git("branch", plan.target);
  fs.writeFileSync(join(tree, "README.md"), "set aside\n");
  git("stash", "push", "-q", "-m", "of a person");
  if (!plan.isCheckedOut) {
    fs.writeFileSync(join(tree, "shared-1.txt"), "staged by a person\n");
    git("add", "shared-1.txt");
    fs.writeFileSync(join(tree, "shared-1.txt"), "changed after that\n");
  }
  fs.writeFileSync(join(tree, "draft.txt"), "of a person\n");
  return [tree, other];
}

function taskOf({ id, by, land, attempts }: TaskPlan, plan: HistoryPlan): Record<string, unknown> {
  return {
    ...(by === "program" ? { exec: ["sh", fixture("agent.sh")] } : {}),
    ...(by === "agent" ? { agent: "coder", prompt: `work of ${id}` } : {}),
    cwd: "repo",
    worktree: "auto",
    land,
    target: plan.target,
    ...(plan.isCheckedOut ? { land_into_checkout: true } : {}),
    verify: ["sh", fixture("verify.sh")],
    max_attempts: attempts + 2,
    timeout_ms: 30_000,
  };
}

/** Drops the tasks and moves the target at the times of the plan. Resolves when all of it has happened. */
async function dropAll(world: World): Promise<void> {
  const { plan, pool } = world;
  const drop = (task: TaskPlan): void => pool.drop(task.id, taskOf(task, plan));
  for (const task of plan.tasks) if (task.atMs === 0) drop(task);
  const late = plan.tasks
    .filter(({ atMs }) => atMs > 0)
    .map((task) => wait(task.atMs).then(() => drop(task)));
  const moves = plan.movesAtMs.map((atMs) => wait(atMs).then(() => runPerson(world, String(atMs))));
  await Promise.all([...late, ...moves]);
}

/**
 * Starts supervisors until one has ended by itself, with nothing left.
 * @param killAllAtMs one for each start
 * @param jobs what goes on beside it
 */
async function settle(
  world: World,
  killAllAtMs: readonly number[],
  jobs: Promise<void> = Promise.resolve(),
): Promise<void> {
  const { pool, place } = world;
  const kills = [...killAllAtMs];
  for (let start = 1; start <= STARTS_MAX; start++) {
    const isOver = await startOnce(world, kills.shift());
    await jobs;
    // A task may have been dropped after it had ended.
    if (isOver && fs.readdirSync(pool.inbox).length === 0) return;
  }
  throw new Error(`${STARTS_MAX} starts, and ${place.state} has not settled`);
}

/** @returns whether it ended by itself */
async function startOnce(world: World, killAtMs: number | undefined): Promise<boolean> {
  const { pool, git } = world;
  world.starts++;
  const running = pool.spawn(["run", "--drain", "--no-live"]);
  const { child, ended, pid } = running;
  git.alsoKill(pid);
  const limit = new AbortController();
  const { signal } = limit;
  if (killAtMs !== undefined)
    wait(killAtMs, undefined, { signal }).then(
      () => killPool(pool.state),
      () => {},
    );
  const limitMs = timeLimitMs(START_MS_MAX);
  const tooLong = wait(limitMs, "late" as const, { signal }).catch(() => "ended" as const);
  const end = await Promise.race([ended, tooLong]);
  limit.abort();
  if (end === "late") {
    child.kill("SIGKILL");
    throw new Error(`a supervisor has not ended after ${limitMs} ms: ${running.stderr()}`);
  }
  return end !== "ended" && end.signal === null;
}

/** SIGKILL to all processes that name the state tree, and not to the person. */
function killPool(state: string): void {
  for (const pid of fs.readdirSync("/proc").filter((name) => /^\d+$/.test(name)))
    try {
      const names = ["cmdline", "environ"].map((file) => fs.readFileSync(`/proc/${pid}/${file}`));
      if (Number(pid) !== process.pid && names.some((text) => text.includes(state)))
        process.kill(Number(pid), "SIGKILL");
    } catch {
      // It has ended.
    }
}

function runPerson({ pool, place, plan }: World, name: string): Promise<void> {
  const { notes, repo, env } = place;
  const child: ChildProcess = spawn("sh", [join(notes, "person.sh"), name], {
    env: { ...env, HISTORY: notes, REPO: repo, GIT, TARGET: plan.target },
    cwd: pool.dir,
    stdio: "ignore",
  });
  return new Promise((resolve) => child.once("close", () => resolve()));
}

/** Removes the locks of a killed git, as the messages say, and lands what waits for a person or could not land. @returns whether it landed any */
async function decideAsPerson({ plan, pool, place }: World): Promise<boolean> {
  for (const name of fs.readdirSync(join(place.repo, ".git"), {
    recursive: true,
    encoding: "utf8",
  }))
    if (name.endsWith(".lock") && !name.startsWith("mailchute-"))
      fs.rmSync(join(place.repo, ".git", name), { force: true, recursive: true });
  let hasLanded = false;
  const done = new Map(pool.results().map((record) => [record.task_id, record]));
  for (const { id } of plan.tasks) {
    const landing = (done.get(id) as { landing?: string } | undefined)?.landing;
    if (landing !== "pending" && landing !== "branch") continue;
    if (done.has(`${id}.land`)) continue;
    const { code, stderr } = await pool.run(["land", id]);
    if (code !== 0) throw new Error(`land ${id}: exit ${code}: ${stderr}`);
    hasLanded = true;
  }
  return hasLanded;
}

/** Removes what is left of the worktrees, by name: their work is saved before that. */
async function cleanUp({ plan, pool, git }: World): Promise<void> {
  const left = (): string[] =>
    plan.tasks.map(({ id }) => id).filter((id) => fs.existsSync(join(pool.state, "worktrees", id)));
  let said = "";
  // The first call may be killed, too.
  for (let round = 0; round < 3 && left().length > 0; round++) {
    const { code, stdout, stderr } = await pool.run(["worktrees", "clean", ...left(), "--ignored"]);
    said = `exit ${code}: ${stdout}${stderr}`;
    git.disarm();
  }
  if (left().length > 0) throw new Error(`worktrees clean: ${said}`);
}
