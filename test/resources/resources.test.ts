/**
 * What a machine may be short of, at the start of a pool and under load: the pool says what it is, uses up no attempt, and goes on
 * when it is over. Four of them in the searches, all with `npm run test:resources`, which prints a table of them.
 */
import fs from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, expect, it } from "vitest";
import { resultName } from "../../src/core/names.ts";
import { checkState } from "../support/check-state.ts";
import { canLimit, freshUid, withLimits } from "../support/limits.ts";
import { newPool, type Pool, type PoolOptions, type Running } from "../support/pool.ts";
import { tempDir } from "../support/temp-dir.ts";
import { waitFor } from "../support/wait-for.ts";
import { IS_WHOLE } from "../support/walks.ts";
import {
  FAULTS,
  type Fault,
  type Faulty,
  hungry,
  MIB,
  nodeBytes,
  SHORT_OF_MEMORY,
} from "./faults.ts";

const SAMPLE = [
  "processes and threads, 60 (ulimit -u)",
  "address space for threads (ulimit -v)",
  "open files, none (ulimit -n)",
  "open files, 1 left (ulimit -n)",
];
const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const HEARTBEAT_MS = 250;
/** Each shortage lasts for this long at least: what looks around now and then meets it. */
const SHORTAGE_MS = 3 * HEARTBEAT_MS;
const CONFIG = `
durability: power
workers: 3
settle_ms: 300
grace_ms: 500
heartbeat_ms: ${HEARTBEAT_MS}
retry: {max_attempts: 1, backoff_ms: 50, backoff_max_ms: 500}
`;
const BEAR_MS = 20_000;
const GO_ON_MS = 60_000;
/** Of a test that waits for what comes late, or never. */
const LONG_MS_MAX = 600_000;

const table: string[] = [];
afterAll(() => {
  if (table.length === 0) return;
  const head = ["| short of | when | verdict | what the pool said |", "|---|---|---|---|"];
  process.stdout.write(`\n${[...head, ...table].join("\n")}\n`);
  const count = (verdict: string): number =>
    table.filter((row) => row.includes(`| ${verdict} |`)).length;
  process.stdout.write(
    `resources: ${count("passed")} shortages passed, ${count("failed")} failed, ${count("caught")} controls caught, ${count("not tried")} not tried\n`,
  );
});

/** Everything that the pool has said so far, where people look. */
function said(pool: Pool, runs: readonly Running[]): string {
  const document = pool.supervisor();
  return [
    ...runs.map((run) => run.stderr()),
    ...pool.alerts().map((alert) => String(alert["message"])),
    ...(document?.troubles ?? []).map(({ what }) => what),
    document?.watching ?? "",
  ].join("\n");
}

const EASY: NonNullable<Fault["tasks"]> = { count: 8, task: { exec: ["sleep", "0.05"] } };

function dropAll(pool: Pool, prefix: string, { count, task } = EASY): string[] {
  const ids = Array.from({ length: count }, (_, n) => `${prefix}-${n}`);
  for (const id of ids) pool.drop(id, { ...task, max_attempts: 1 });
  return ids;
}

/** @returns what is not as it should be, and what the pool said */
async function tryFault(
  fault: Fault,
  { pool, strike, lift, isForLife }: Faulty,
): Promise<{ problems: string[]; words: string }> {
  const problems: string[] = [];
  const runs: Running[] = [];
  const run = (): Running => {
    const running = pool.spawn(["run"]);
    runs.push(running);
    return running;
  };
  let ids: string[] = [];
  let running: Running;
  if (fault.when === "at start") {
    if (fault.exitCode === undefined) ids = dropAll(pool, "waits", fault.tasks);
    running = run();
    if (fault.exitCode !== undefined) {
      const { exitCode } = await running.ended;
      if (exitCode !== fault.exitCode) problems.push(`exit code ${exitCode}`);
    }
  } else {
    running = run();
    await waitFor(() => pool.workers().length > 0, { what: "a worker" });
    for (const id of dropAll(pool, "before")) await pool.result(id);
    ids = dropAll(pool, "waits", fault.tasks);
    const hasBegun = (): boolean =>
      pool.events().some((e) => e["event"] === "started" && ids.includes(String(e["task_id"])));
    await waitFor(hasBegun, { what: "the start of one of them" });
    await strike();
  }
  const fromMs = performance.now();
  await waitFor(() => performance.now() - fromMs >= SHORTAGE_MS, { what: "three heartbeats" });
  await waitFor(() => fault.says.test(said(pool, runs)), { what: `a word: ${fault.says}` });
  const words = said(pool, runs)
    .split("\n")
    .find((line) => fault.says.test(line));
  const isSettled = (): boolean =>
    ids.every((id) => fs.existsSync(join(pool.outbox, `${id}_result.json`))) ||
    pool.errors().length > 0;
  const untilSettled = (timeoutMs: number): Promise<unknown> =>
    waitFor(isSettled, { what: "all tasks to settle", timeoutMs });
  if (fault.isBearable === true) {
    ids.push(...dropAll(pool, "later", fault.tasks));
    await untilSettled(BEAR_MS);
  }
  lift();
  if (isForLife === true) {
    running.child.kill("SIGTERM");
    await running.ended;
    running = run();
  }
  if (fault.exitCode !== undefined) {
    running = run();
    ids = dropAll(pool, "waits", fault.tasks);
  }
  await untilSettled(GO_ON_MS);
  for (const { task_id, error } of pool.errors()) problems.push(`${task_id} failed: ${error}`);
  for (const { task_id, attempts } of pool.results())
    if (attempts !== 1) problems.push(`${task_id} used up ${attempts} attempts`);
  running.child.kill("SIGTERM");
  await running.ended;
  // A journal may have lost lines, and a worker may have died before it had anything.
  const state = checkState(
    pool.state,
    pool.results().map((r) => r.task_id),
    { hadCrashes: true, wroteLate: true },
  );
  problems.push(...(problems.length === 0 ? state : []));
  return { problems, words: (words ?? "").trim() };
}

async function tell(
  fault: Fault,
  name: string,
  options: PoolOptions,
  isControl: boolean,
): Promise<void> {
  const why = fault.whyNot();
  const row = (verdict: string, words: string): void => {
    table.push(
      `| ${name} | ${fault.when} | ${verdict} | ${words.replaceAll("|", "/").slice(0, 200)} |`,
    );
  };
  if (why !== undefined) {
    row("not tried", why);
    return;
  }
  const { problems, words } = await tryFault(
    fault,
    fault.make({
      config: `${CONFIG}sweep_ms: ${fault.sweepMs ?? 200}\n${fault.config ?? ""}`,
      ...options,
    }),
  ).catch((error: unknown) => ({ problems: [String(error)], words: "" }));
  const isGood = isControl ? problems.length > 0 : problems.length === 0;
  row(
    isGood ? (isControl ? "caught" : "passed") : "failed",
    isControl ? (problems[0] ?? "nothing was found") : (problems[0] ?? words),
  );
  if (isControl) expect(problems).not.toEqual([]);
  else expect(problems).toEqual([]);
}

const chosen = FAULTS.filter(({ name }) => IS_WHOLE || SAMPLE.includes(name));

it.each(chosen.map((fault) => [fault.name, fault.when, fault] as const))(
  "a pool that is short of %s, %s, says so, uses up no attempt, and goes on",
  (name, _when, fault) => tell(fault, name, {}, false),
);

it.skipIf(!IS_WHOLE || !canLimit())(
  "a function that takes memory without end fails in the end, and keeps no other task from its own",
  async () => {
    const prefix = withLimits(`-v ${(nodeBytes() + 256 * MIB) / 1024}`);
    const { tasks, config } = hungry(100_000);
    const pool = newPool({ config: `${CONFIG}${config}`, uid: freshUid(), prefix });
    pool.drop("endless", { ...tasks.task, max_attempts: 1 });
    await pool.start();
    await waitFor(
      () => pool.alerts().some(({ message }) => SHORT_OF_MEMORY.test(String(message))),
      {
        what: "the first death",
      },
    );
    const others = dropAll(pool, "other");
    // Ten deaths are not its own, and after each the next worker comes later.
    const { error } = await pool.error("endless", LONG_MS_MAX);
    expect(error).toMatch(/^its worker died because memory ran out during attempt [12] of 1$/);
    // What a dead worker has staged stays for an hour: their records are all there is to wait for.
    const areDone = (): boolean =>
      others.every((id) => fs.existsSync(join(pool.outbox, resultName(id))));
    await waitFor(areDone, { what: "all others", timeoutMs: GO_ON_MS });
    await pool.stop();
    expect(checkState(pool.state, [...others, "endless"], { hadCrashes: true })).toEqual([]);
  },
  LONG_MS_MAX,
);

interface Control {
  what: string;
  /** What brings it to light. */
  fault: string;
  when: Fault["when"];
  /** In some file of `dist/`. */
  from: string | RegExp;
  to: string;
  tasks?: Fault["tasks"];
}

const CONTROLS: readonly Control[] = [
  {
    what: "a worker that makes 64 threads when it first settles",
    fault: "processes and threads, 60 (ulimit -u)",
    when: "at start",
    from: "makeThreads(boot.threads);",
    to: 'process.env.UV_THREADPOOL_SIZE = "64";',
  },
  {
    what: "a heartbeat that ends its worker when it can open nothing",
    fault: "open files, none (ulimit -n)",
    when: "under load",
    from: /(?<=readdirSync\(data\.processingDir\);\s*\} catch \{)/,
    to: 'process.kill(process.pid, "SIGKILL");',
    // They run when the heartbeat looks.
    tasks: { count: 6, task: { exec: ["sleep", "2"] } },
  },
  {
    what: "a run that the disk hinders, and that counts as failed",
    fault: "disk, full",
    when: "under load",
    from: "function deferred(message) {",
    to: '$& return failed("spawn", "ErrSpawn", message);',
  },
  {
    what: "a pool that says it polls, and does not",
    fault: "file events, no more watches (inotify)",
    when: "under load",
    from: "this.poll = setInterval(() => {",
    to: "((look) => look)(() => {",
  },
  {
    what: "a death for want of memory that uses up runs",
    fault: "address space for work (ulimit -v)",
    when: "at start",
    from: "return this.starvedPrefixes.has(ownerPrefix);",
    to: "return false;",
  },
];

it.skipIf(!IS_WHOLE).each(CONTROLS.map((control) => [control.what, control] as const))(
  "%s is caught",
  async (what, { fault: name, when, from, to, tasks }) => {
    const fault = FAULTS.find((one) => one.name === name && one.when === when);
    if (fault === undefined) throw new Error(`no fault ${name}, ${when}`);
    const broken = tasks === undefined ? fault : { ...fault, tasks };
    await tell(broken, `control, ${what}: ${name}`, { launcher: brokenBuild(from, to) }, true);
  },
  LONG_MS_MAX,
);

/** The built package, in which one text is another. @returns its launcher */
function brokenBuild(from: string | RegExp, to: string): string {
  const dir = tempDir();
  fs.chmodSync(dir, 0o755);
  for (const part of ["bin", "dist", "templates", "package.json"])
    fs.cpSync(join(ROOT, part), join(dir, part), { recursive: true });
  fs.symlinkSync(join(ROOT, "node_modules"), join(dir, "node_modules"));
  const dist = join(dir, "dist");
  let count = 0;
  for (const name of fs.readdirSync(dist, { recursive: true, encoding: "utf8" })) {
    if (!name.endsWith(".cjs")) continue;
    const text = fs.readFileSync(join(dist, name), "utf8");
    const broken = text.replace(from, to);
    if (broken === text) continue;
    fs.writeFileSync(join(dist, name), broken);
    count += 1;
  }
  if (count === 0) throw new Error(`${dist} does not hold ${from}`);
  return join(dir, "bin", "mailchute.js");
}
