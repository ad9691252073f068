/** Lands ten branches of which three conflict, and kills the worker at calls of git on the way. */
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import { delimiter, join } from "node:path";
import { expect } from "vitest";
import {
  GIT_ENVIRONMENT,
  newRepository,
  type TestRepository,
} from "../../support/git-repository.ts";
import { newPool, type Pool } from "../../support/pool.ts";

const GIT = execFileSync("sh", ["-c", "command -v git"], { encoding: "utf8" }).trim();
export const TARGET = "mailchute/integration";
/** The tasks end in this order. Four of them write the same file: the first of these lands. */
export const ORDER = ["t3", "t8", "t0", "t9", "t5", "t1", "t6", "t7", "t4", "t2"];
const RIVALS = ["t8", "t9", "t6", "t7"];
export const LANDED = ORDER.filter((id) => id === RIVALS[0] || !RIVALS.includes(id));
const fileOf = (id: string): string => (RIVALS.includes(id) ? "same.txt" : `${id}.txt`);

/** No task and no landing fails because it was killed often. */
const CONFIG = `
durability: process
processes: 1
settle_ms: 300
sweep_ms: 200
grace_ms: 500
retry: {max_attempts: 1000, backoff_ms: 20, backoff_max_ms: 100}
env_allow: [WALK]
`;

/** Comes first on PATH, so mailchute calls it as git. It kills the worker at the first call of each kind, before, during or after it; $WALK/share: at every how many kinds, from which on. */
const KILLING_GIT = (walk: string) => `#!/bin/sh
WALK=${walk}
[ -d "$WALK/steps" ] || exec ${GIT} "$@"
case "$(tr '\\0' ' ' < "/proc/$PPID/cmdline")" in */worker/entry*) ;; *) exec ${GIT} "$@" ;; esac
kind=$(echo "$*" | sed -E 's/-c [^ ]+ ?//g; s#(^| |=)/[^ ]*#\\1P#g; s/[0-9a-f]{12,40}/H/g; s/t[0-9]/T/g; s/[0-9]{6,}/N/g')
name=$(echo "$kind" | md5sum | cut -c1-12)
mkdir "$WALK/steps/$name" 2>/dev/null || exec ${GIT} "$@"
read -r every first < "$WALK/share"
[ $((($(ls "$WALK/steps" | wc -l) - first) % every)) -eq 0 ] || exec ${GIT} "$@"
echo "$kind" >> "$WALK/killed"
number=$(($(wc -l < "$WALK/killed")))
case $((number % 3)) in
  0) kill -KILL $PPID; exit 1 ;;
  1) ${GIT} "$@" <&0 & child=$!
     sleep "0.00$((number % 8))"
     kill -KILL $PPID; kill -KILL $child 2>/dev/null; exit 1 ;;
  2) ${GIT} "$@"; kill -KILL $PPID; exit 1 ;;
esac
`;

/** Each waits for the one before it, and commits once. Where work lands the check waits for all ten. With kills nothing waits. */
const WORK = (file: string) => `
until test -d "$WALK/steps" || test -z "$1" || test -e "$MAILCHUTE_STATE/mailbox/outbox/$1_result.json"; do sleep 0.2; done
test -e ${file} || { echo "$MAILCHUTE_TASK_ID" > ${file}; ${GIT} add -A; ${GIT} -c user.name=x -c user.email=x@x commit -qm "$MAILCHUTE_TASK_ID"; }
${GIT} rev-parse HEAD >> "$WALK/made"
echo draft > "draft of $MAILCHUTE_TASK_ID.txt"
`;
const CHECK = `
case $PWD in */.landing/*)
  [ ! -d "$WALK/steps" ] || ! mkdir "$WALK/steps/verify" 2>/dev/null || { echo verify >> "$WALK/killed"; kill -KILL $PPID; }
  until test -d "$WALK/steps" || test "$(ls "$MAILCHUTE_STATE/mailbox/outbox" | grep -c '^t[0-9]_result')" -eq 10; do sleep 0.2; done ;;
esac
`;

export interface Ten {
  pool: Pool;
  repo: TestRepository;
  walk: string;
}

export function newTen(): Ten {
  const env: Record<string, string> = { ...GIT_ENVIRONMENT };
  const pool = newPool({ config: CONFIG, env });
  const walk = join(pool.dir, "walk");
  fs.mkdirSync(walk);
  fs.writeFileSync(join(walk, "git"), KILLING_GIT(walk), { mode: 0o755 });
  env["WALK"] = walk;
  env["PATH"] = `${walk}${delimiter}${process.env["PATH"] ?? ""}`;
  env["XDG_STATE_HOME"] = join(pool.dir, "user");
  const repo = newRepository(join(pool.dir, "repo"));
  for (const [number, id] of ORDER.entries())
    pool.drop(id, {
      exec: ["sh", "-ec", WORK(fileOf(id)), "sh", ORDER[number - 1] ?? ""],
      cwd: "repo",
      worktree: "auto",
      land: "merge",
      base: "checkout",
      verify: ["sh", "-c", CHECK],
      sequence_number: number,
      title: `what ${id} left`,
    });
  return { pool, repo, walk };
}

export async function expectSevenAndThree({ pool, repo, walk }: Ten): Promise<void> {
  for (const id of ORDER) expect(await pool.result(id)).toMatchObject({ landing: "pending" });
  for (const id of LANDED)
    expect((await pool.result(`${id}.land`)).output).toMatchObject({ landing: "landed" });
  const left = RIVALS.slice(1);
  expect(
    pool
      .errors()
      .map(({ task_id }) => task_id)
      .sort(),
  ).toEqual(left.map((id) => `${id}.land`).sort());
  for (const { kind, error } of pool.errors()) {
    expect(kind).toBe("landing");
    expect(error).toContain("conflict in same.txt");
  }
  // One commit on top of the other, each change once, and no file is missing or mixed.
  expect(repo.git("rev-list", "--merges", "--count", TARGET)).toBe("0");
  const subjects = repo.git("log", "--format=%s", "--reverse", TARGET).split("\n");
  const own = subjects.filter((one) => ORDER.includes(one));
  expect(own.toSorted()).toEqual(LANDED.toSorted());
  for (const id of LANDED) {
    expect(repo.git("show", `${TARGET}:${fileOf(id)}`)).toBe(id);
    expect(repo.git("show", `${TARGET}:draft of ${id}.txt`)).toBe("draft");
  }
  for (const id of left) {
    expect(repo.git("show", `mailchute/${id}:same.txt`)).toBe(id);
    expect(repo.git("show", `mailchute/${id}:draft of ${id}.txt`)).toBe("draft");
    expect(fs.existsSync(join(pool.state, "worktrees", id))).toBe(true);
  }
  // Whatever the runs had made is below a ref, also after git has thrown away what has none.
  repo.git("reflog", "expire", "--expire=now", "--all");
  repo.git("gc", "--quiet", "--prune=now");
  const reachable = new Set(repo.git("rev-list", "--all").split("\n"));
  for (const one of fs.readFileSync(join(walk, "made"), "utf8").trim().split("\n"))
    expect(reachable).toContain(one);
  expect(repo.git("fsck", "--strict", "--no-dangling")).toBe("");
  expect(repo.git("status", "--porcelain")).toBe("");
  expect(repo.git("worktree", "list").split("\n")).toHaveLength(1 + left.length);
  expect(pool.pids()).toEqual([]);
}

/** @param every at every how many kinds of steps the worker is killed. @param first from which of these on. @returns the steps at which it was */
export async function landTenWithKills(every: number, first: number): Promise<string[]> {
  const ten = newTen();
  fs.writeFileSync(join(ten.walk, "share"), `${every} ${first}\n`);
  fs.mkdirSync(join(ten.walk, "steps"));
  await (await ten.pool.start(["--drain", "--workers", "1"])).ended;
  const killed = fs.readFileSync(join(ten.walk, "killed"), "utf8").trim().split("\n");
  expect(new Set(killed).size).toBe(killed.length);
  const steps = fs.readdirSync(join(ten.walk, "steps")).length;
  expect(steps).toBeGreaterThan(16);
  expect(killed.length).toBeGreaterThanOrEqual(Math.floor((steps - first) / every));
  await expectSevenAndThree(ten);
  return killed;
}
