/**
 * What a run, a sender or another program puts into any place that a process of ours reads: no process waits for it, none takes much
 * memory, and what is wrong is told.
 */
import fs from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { stateTree } from "../../src/core/state-tree.ts";
import { inWorktree, newPlace } from "../parts/worktrees/place.ts";
import { newPool, type Pool, QUICK_CONFIG, type Running } from "../support/pool.ts";
import { timeLimitMs } from "../support/time-limit.ts";
import { waitFor } from "../support/wait-for.ts";
import { sampleOf } from "../support/walks.ts";
import { KINDS, placesOfTree, put } from "./every-place.ts";

/**
 * A command that has not ended after this time counts as one that hangs (ms). The start of Node is part of it, and a run waits for a
 * writer to stop and for a lease to expire.
 */
const LIMIT_MS = 4000;
/** The same for a command that has nothing to wait for, from the end of the start of Node (ms): no file there may hold it up longer. */
const HELD_UP_MS = 2000;
const MEMORY_KB_MAX = 400 * 1024;
const COMMANDS = [["status"], ["show", "a"], ["why", "a"], ["doctor"], ["report"], ["ls"]];
const PATHS = Object.values(stateTree("")).filter((path) => path !== "");
const PLACES = [...new Set([...placesOfTree(), ...PATHS])];
const CASES = PLACES.flatMap((place) => Object.keys(KINDS).map((kind) => ({ place, kind })));
/** Files that are taken when their writer has stopped: until then `run --drain` has something to do. */
const IS_AWAITED = /^(?:mailbox|control|post)\/inbox\/|^mailbox\/processing\/.*~w-/;
/** A claim of an unknown worker is taken back when it has not changed for this long. */
const SHORT_LEASE = `${QUICK_CONFIG}heartbeat_ms: 500\nlease_ttl_ms: 1500\n`;
/** A person must act: no run can have its folder, or the supervisor may not read a task. `run --drain` then waits, and tells it. */
const NEEDS_PERSON = /^(?:runs|evidence)$/;
const UNREADABLE = "a file that others may not read";
const NEEDS_RIGHTS = /^(?:runs|evidence|mailbox\/processing)\//;
/** After SIGTERM, a run that only waits ends in less than half a second (ms). */
const STOP_MS = 1500;

/** Writes at the end of each process how much memory it took (KB), and its time (ms). */
const NOTES = `const begun = performance.now();
process.on("exit", () => require("fs").appendFileSync(process.env.NOTES,
  [process.resourceUsage().maxRSS, performance.now() - begun, process.argv[2]].join(" ") + "\\n"));`;
/** A variant of our code that opens as Node does by default: it waits, and follows links. */
const OPENS_PLAINLY = `const fs = require("fs"); const { openSync } = fs;
fs.openSync = (path, flags, mode) => openSync(path, typeof flags === "number" ? flags & ~(fs.constants.O_NONBLOCK | fs.constants.O_NOFOLLOW) : flags, mode);`;

function poolWith(
  more = "",
  { uid, config = QUICK_CONFIG }: { uid?: number | undefined; config?: string } = {},
): { pool: Pool; notes: () => Note[] } {
  const env: Record<string, string> = {};
  const pool = newPool({ config, env, ...(uid === undefined ? {} : { uid }) });
  const script = join(pool.dir, "first.cjs");
  const path = join(pool.dir, "notes");
  fs.writeFileSync(path, "", { mode: 0o666 });
  fs.chmodSync(path, 0o666);
  fs.writeFileSync(script, `${NOTES}\n${more}`);
  Object.assign(env, { NODE_OPTIONS: `--require ${script}`, NOTES: path });
  const notes = (): Note[] =>
    fs
      .readFileSync(path, "utf8")
      .split("\n")
      .slice(0, -1)
      .map((line) => line.split(" "))
      .map(([kb, ms, verb = ""]) => ({ kb: Number(kb), ms: Number(ms), verb }));
  return { pool, notes };
}

/** What a process has taken, and the verb that it ran. */
interface Note {
  kb: number;
  ms: number;
  verb: string;
}

/** The commands of which one was held up for too long. */
function heldUp(notes: readonly Note[], limitMs = timeLimitMs(HELD_UP_MS)): string[] {
  const verbs = new Set(COMMANDS.map(([verb]) => verb));
  return notes.filter(({ ms, verb }) => verbs.has(verb) && ms > limitMs).map(({ verb }) => verb);
}

/** @returns false when it did not end in time */
async function hasEnded(running: Running, limitMs: number): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<false>((resolve) => {
    timer = setTimeout(() => resolve(false), timeLimitMs(limitMs));
  });
  const isOver = await Promise.race([running.ended.then(() => true), late]);
  clearTimeout(timer);
  return isOver;
}

/** The same; it is killed then. */
async function endsInTime(running: Running, limitMs: number): Promise<boolean> {
  const isOver = await hasEnded(running, limitMs);
  if (!isOver) running.child.kill("SIGKILL");
  return isOver;
}

/** Whether one of these texts names the folder of the place, and the fault. */
function isTold(texts: readonly string[], pool: Pool, place: string): boolean {
  const [top = "", tray = ""] = place.split("/");
  const folder = join(pool.state, top === "mailbox" ? join(top, tray) : top);
  return texts.some((text) => text.includes(folder) && /\bE[A-Z]{3,}\b/.test(text));
}

/** What is wrong when `run --drain` waits for a person: it must tell why, and end at once when it is asked to. */
async function faultsOfWait(pool: Pool, running: Running, place: string): Promise<string[]> {
  const faults: string[] = [];
  const alerts = pool.alerts().map((one) => String(one["message"]));
  if (!isTold(running.stderr().split("\n"), pool, place)) faults.push("nothing on stderr");
  if (!isTold(alerts, pool, place)) faults.push("no alert");
  running.child.kill("SIGTERM");
  if (!(await endsInTime(running, STOP_MS))) faults.push("it goes on after SIGTERM");
  return faults;
}

async function check(
  pool: Pool,
  args: readonly string[],
  what: string,
  needsPersonAt?: string,
): Promise<void> {
  const running = pool.spawn(args);
  const hasTime = await hasEnded(running, LIMIT_MS);
  if (!hasTime && needsPersonAt !== undefined)
    expect(await faultsOfWait(pool, running, needsPersonAt), what).toEqual([]);
  else if (!hasTime) running.child.kill("SIGKILL");
  const isRight = hasTime || needsPersonAt !== undefined;
  expect(isRight, `${args.join(" ")} ends with ${what}`).toBe(true);
  const { exitCode } = await running.ended;
  const said = running.stderr();
  expect(said, `${args.join(" ")} with ${what}`).not.toMatch(/\n {4}at |unexpected:/);
  if ((exitCode ?? 99) >= 64) expect(said, `${args.join(" ")} with ${what}`).toMatch(/Err[A-Z]/);
}

function mayWait(place: string, kind: string): boolean {
  return NEEDS_PERSON.test(place) || (kind === UNREADABLE && NEEDS_RIGHTS.test(place));
}

test("the page names every path of the code, or its folder", () => {
  expect(PLACES.length).toBeGreaterThan(60);
  const named = placesOfTree();
  for (const path of PATHS) {
    const isNamed = named.some(
      (one) => `${path}/`.startsWith(`${one}/`) || one.startsWith(`${path}/`),
    );
    expect(isNamed, `docs/state-tree.md names ${path}`).toBe(true);
  }
});

test.each(sampleOf(CASES, 8))("$place: $kind there keeps no process", async ({ place, kind }) => {
  // Root may read everything.
  const uid = kind === UNREADABLE ? 65534 : undefined;
  const config = /~w-/.test(place) ? SHORT_LEASE : QUICK_CONFIG;
  const { pool, notes } = poolWith("", { uid, config });
  if (place !== "roadmap.yaml")
    fs.writeFileSync(join(pool.state, "roadmap.yaml"), 'nodes: [{id: n, exec: ["true"]}]\n');
  if (!/^(?:mailbox\/)?inbox$|^mailbox$/.test(place)) {
    pool.drop("other", { exec: ["true"] });
    if (uid !== undefined) fs.chownSync(join(pool.inbox, "other.json"), uid, uid);
  }
  const what = `${kind} at ${place}`;
  const end = put(kind, join(pool.state, place));
  try {
    if (kind !== "a file that grows" || !IS_AWAITED.test(place))
      await check(pool, ["run", "--drain"], what, mayWait(place, kind) ? place : undefined);
    await Promise.all(COMMANDS.map((args) => check(pool, args, what)));
  } finally {
    end();
  }
  expect(Math.max(...notes().map(({ kb }) => kb)), what).toBeLessThan(MEMORY_KB_MAX);
  expect(heldUp(notes()), what).toEqual([]);
});

test.each([
  ["config.yaml", ["run", "--drain"], "ErrInvalidConfig", ["a pipe", "a directory"]],
  ["config.yaml", ["doctor"], "config.yaml", ["a link to /dev/zero", "a socket"]],
  ["roadmap.yaml", ["roadmap", "check"], "ErrInvalidRoadmap", ["a pipe", "a link to /dev/zero"]],
  ["roadmap.yaml", ["roadmap", "check"], "the limit of", ["10 GB without a byte of data"]],
] as const)("%s: `%s` says %s", async (place, args, said, kinds) => {
  for (const kind of kinds) {
    const { pool } = poolWith();
    put(kind, join(pool.state, place));
    const { stderr, stdout } = await pool.run(args);
    expect(stdout + stderr, kind).toContain(said);
  }
});

test("a variant that opens files as Node does by default is found", async () => {
  for (const [place, args] of [
    ["roadmap.yaml", ["show", "a"]],
    ["config.yaml", ["doctor"]],
  ] as const) {
    const { pool } = poolWith(OPENS_PLAINLY);
    put("a pipe", join(pool.state, place));
    expect(await endsInTime(pool.spawn(args), 1000), place).toBe(false);
  }
});

test("a variant that is held up by the file that it opens is found", async () => {
  const limitMs = timeLimitMs(HELD_UP_MS);
  const waits = `const fs = require("fs"); const { openSync } = fs;
fs.openSync = (path, ...more) => {
  if (String(path).endsWith("roadmap.yaml"))
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ${limitMs + 1000});
  return openSync(path, ...more);
};`;
  const { pool, notes } = poolWith(waits);
  put("a pipe", join(pool.state, "roadmap.yaml"));
  await pool.run(["show", "a"]);
  expect(heldUp(notes(), limitMs)).toEqual(["show"]);
});

test.each([
  ["tells nothing", "process.stderr.write = () => true;", ["nothing on stderr"]],
  [
    "does not listen to SIGTERM",
    `const { on } = process; process.on = function (name, listener) {
      return on.call(this, name, name === "SIGTERM" ? () => {} : listener); };`,
    ["it goes on after SIGTERM"],
  ],
])("a variant that waits for a person and %s is found", async (_, variant, faults) => {
  const { pool } = poolWith(variant);
  pool.drop("a", { exec: ["true"] });
  put("a pipe", join(pool.state, "runs"));
  const running = pool.spawn(["run", "--drain"]);
  await waitFor(
    () =>
      isTold(
        pool.alerts().map((one) => String(one["message"])),
        pool,
        "runs",
      ),
    {
      what: "an alert",
    },
  );
  expect(await faultsOfWait(pool, running, "runs")).toEqual(faults);
});

/** All that git has in the directory of a repository and of a worktree, and what it reads in a worktree. */
function placesOfRepository(): string[] {
  const { repo } = newPlace();
  repo.git("worktree", "add", "--quiet", "../other");
  const dir = join(repo.dir, ".git");
  const found = fs.readdirSync(dir, { recursive: true, encoding: "utf8" });
  const of = (path: string): string => path.replace(/^worktrees\/other/, "$OWN");
  return [
    ...found.filter((path) => !/^(?:objects\/..|hooks\/.*sample)/.test(path)).map(of),
    ..."info/attributes hooks/post-commit packed-refs shallow config.worktree info/grafts".split(
      " ",
    ),
  ].map((path) => (path.startsWith("$OWN") ? path : `$GIT/${path}`));
}

const IN_WORKTREE = [
  ".git",
  ".gitignore",
  ".gitattributes",
  ".gitmodules",
  ".mailmap",
  "README.md",
];
const OF_RUN: Readonly<Record<string, string>> = {
  "a pipe": 'mkfifo "$P"',
  "a directory": 'mkdir "$P"',
  "a link to /dev/zero": 'ln -s /dev/zero "$P"',
  "a link to itself": 'ln -s "$P" "$P"',
};

test("what a run puts into any place of its repository keeps no process", async () => {
  const places = [
    ...placesOfRepository().filter((path) => !/\$(?:OWN|GIT)$/.test(path)),
    ...IN_WORKTREE,
  ];
  expect(places.length).toBeGreaterThan(20);
  const cases = places.flatMap((place) => Object.keys(OF_RUN).map((kind) => ({ place, kind })));
  for (const { place, kind } of sampleOf(cases, 4)) {
    const { pool } = newPlace();
    const dirs =
      "GIT=$(cd $(git rev-parse --git-common-dir); pwd); OWN=$(git rev-parse --absolute-git-dir)";
    const script = `echo new > new.txt; ${dirs}; P="${place}"; rm -rf "$P"; ${OF_RUN[kind]}`;
    pool.drop("a", inWorktree(script));
    pool.drop("b", { exec: ["true"] });
    const what = `${kind} at ${place}`;
    // A git that finds a pipe is ended after a second; some calls come after each other.
    const running = pool.spawn(["run", "--drain"]);
    expect(await endsInTime(running, 20_000), what).toBe(true);
    expect(running.stderr(), what).not.toMatch(/\n {4}at |unexpected:/);
    expect(pool.settledCount(), what).toBe(2);
  }
});
