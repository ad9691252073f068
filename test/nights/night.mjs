#!/usr/bin/env node
/**
 * `npm run test:nights`: nights of three agents with a list of items, against a service with limits, with kills, conflicts, red checks and a
 * person who commits to the target. Stand-ins play the programs. The oracle reads git and the records, not the report: each item landed
 * once and its check is green at each commit that the target ever had, or it waits with a true reason.
 *
 *   npm run test:nights -- [--nights N] [--seed S] [--items N] [--kills N] [--keep]
 */
import { execFileSync, spawnSync } from "node:child_process";
import fs from "node:fs";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { parseArgs } from "node:util";
import { here, read, Stage } from "../../scripts/demo-stage.mjs";

const { values: flags } = parseArgs({
  options: {
    nights: { type: "string", default: "1" },
    seed: { type: "string", default: String(Date.now() % 1_000_000) },
    items: { type: "string", default: "24" },
    kills: { type: "string", default: "14" },
    limit: { type: "string", default: "360" },
    keep: { type: "boolean", default: false },
    json: { type: "boolean", default: false },
  },
});
const TARGET = "mailchute/integration";

/** Numbers below n, the same for the same seed. */
function randomOf(seed) {
  let state = seed >>> 0;
  return (n) => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) % n;
  };
}

const KINDS = [
  "plain",
  "plain",
  "plain",
  "shared",
  "shared",
  "red",
  "red",
  "limit",
  "error",
  "impossible",
];

class Night {
  constructor(seed) {
    this.seed = seed;
    this.random = randomOf(seed);
    this.stage = new Stage("night", { limitMs: Number(flags.limit) * 1000, keep: flags.keep });
    this.project = join(this.stage.root, "project");
    this.kills = 0;
    this.people = [];
    this.items = Array.from({ length: Number(flags.items) }, (_, n) => {
      const agent = ["ada", "bob", "eve"][this.random(3)];
      const drawn = KINDS[this.random(KINDS.length)];
      // A program of an exec task cannot be asked to mend a conflict, and meets no service.
      const kind =
        agent === "eve" && ["shared", "limit", "error"].includes(drawn) ? "plain" : drawn;
      const ms = this.random(4) === 0 ? 500 + this.random(2500) : this.random(200);
      const id = `i${String(n).padStart(2, "0")}`;
      return { id, agent, kind, ms, commits: this.random(2) === 0 };
    });
  }

  git(...args) {
    return this.stage.run("git", args, this.project).trim();
  }

  prepare() {
    const { root, state } = this.stage;
    fs.mkdirSync(this.project);
    this.git("init", "-q", "--initial-branch=main");
    this.git("config", "user.name", "A Person");
    this.git("config", "user.email", "person@example.invalid");
    fs.writeFileSync(join(this.project, "shared.txt"), "The list\n");
    fs.writeFileSync(
      join(this.project, "check.sh"),
      'for f in files/*.txt; do [ ! -e "$f" ] || grep -q "^good" "$f" || { echo "bad: $f"; exit 1; }; done\n! grep -n "^[<>=]\\{7\\}" shared.txt\n',
    );
    this.git("add", ".");
    this.git("commit", "-qm", "first");
    fs.writeFileSync(join(root, "items.json"), JSON.stringify(this.items));
    const works = { run: `"${process.execPath}" "${here("test/nights/work.mjs")}" "${root}"` };
    const turn = [works, { say: "It is done." }];
    const scriptOf = (agent) => {
      const own = this.items.filter((item) => item.agent === agent);
      const extra = own.flatMap(({ id, kind }) => {
        if (kind === "limit") return [[`Item ${id}`, [[{ limitForS: 3 }, ...turn]]]];
        const error = { fail: 529, message: "overloaded", until: Date.now() / 1000 + 8 };
        return kind === "error" ? [[`Item ${id}`, [[error, ...turn], turn]]] : [];
      });
      return { tasks: Object.fromEntries(extra), turns: [turn] };
    };
    const agent = (name, kind) => {
      const script = join(root, `${name}.json`);
      fs.writeFileSync(script, JSON.stringify(scriptOf(name)));
      const env = { FAKE_AGENT: script, FAKE_AGENT_STATE: join(root, name), HOME: root };
      const program = here(`test/fixtures/programs/fake-${kind}.mjs`);
      return { name, kind, program, account: name, permissions: { mode: "full" }, env };
    };
    const config = {
      workers: 3,
      grace_ms: 500,
      durability: "process",
      retry: { max_attempts: 6, backoff_ms: 100, backoff_max_ms: 500 },
      agents: [agent("ada", "claude"), agent("bob", "codex")],
    };
    fs.writeFileSync(join(state, "config.yaml"), JSON.stringify(config), { mode: 0o600 });
  }

  enqueue() {
    for (const { id, agent } of this.items) {
      const work = join(here("test/nights"), "work.mjs");
      const what =
        agent === "eve"
          ? { exec: [process.execPath, work, this.stage.root] }
          : { agent, prompt: `Item ${id}: do the work of this item.` };
      const task = {
        ...what,
        title: `Item ${id}`,
        cwd: this.project,
        worktree: "auto",
        land: "merge",
        base: this.random(2) === 0 ? "checkout" : "target",
        verify: ["sh", "check.sh"],
      };
      const staged = join(this.stage.root, `${id}.json`);
      fs.writeFileSync(staged, JSON.stringify(task));
      fs.renameSync(staged, join(this.stage.mailbox, "inbox", `${id}.json`));
    }
  }

  /** A person commits to the target, which no worktree has checked out. */
  commitAsPerson() {
    const found = spawnSync("git", ["rev-parse", "--verify", "--quiet", TARGET], {
      cwd: this.project,
    });
    if (found.status !== 0) return;
    const tip = found.stdout.toString().trim();
    const n = this.people.length;
    const index = join(this.stage.root, `index${n}`);
    const env = { ...this.stage.environment(), GIT_INDEX_FILE: index };
    const ask = (args, input) =>
      execFileSync("git", args, { cwd: this.project, env, input, encoding: "utf8" }).trim();
    ask(["read-tree", tip]);
    const blob = ask(["hash-object", "-w", "--stdin"], `by a person ${n}\n`);
    ask(["update-index", "--add", "--cacheinfo", `100644,${blob},person-${n}.txt`]);
    const commit = ask(["commit-tree", ask(["write-tree"]), "-p", tip, "-m", `a person ${n}`]);
    const moved = spawnSync("git", ["update-ref", `refs/heads/${TARGET}`, commit, tip], {
      cwd: this.project,
    });
    if (moved.status === 0) this.people.push(`person-${n}.txt`);
  }

  isOver() {
    return (
      this.stage.inFlight().length === 0 &&
      this.items.every(({ id }) => {
        const record = this.stage.recordOf(id);
        if (record === undefined) return false;
        return record.status !== "completed" || this.stage.recordOf(`${id}.land`) !== undefined;
      })
    );
  }

  async play() {
    const { stage } = this;
    this.prepare();
    stage.startedMs = Date.now();
    stage.start();
    await stage.until("the start", () => fs.existsSync(join(stage.mailbox, "processing")));
    this.enqueue();
    let nextKillMs = Date.now() + 1500;
    let nextPersonMs = Date.now() + 6000;
    for (;;) {
      if (this.isOver()) break;
      if (Date.now() - stage.startedMs > stage.limitMs) return ["the night did not end in time"];
      if (stage.supervisor.exitCode !== null || stage.supervisor.signalCode !== null) stage.start();
      if (this.kills < Number(flags.kills) && Date.now() > nextKillMs) {
        this.kill();
        nextKillMs = Date.now() + 400 + this.random(2500);
      }
      if (this.people.length < 3 && Date.now() > nextPersonMs) {
        this.commitAsPerson();
        nextPersonMs = Date.now() + 5000;
      }
      await wait(50);
    }
    if (stage.supervisor.exitCode !== null || stage.supervisor.signalCode !== null) stage.start();
    await wait(500);
    await stage.stop();
    return this.judge();
  }

  /** One process of the pool, or all of them as a power cut does. */
  kill() {
    this.kills++;
    if (this.random(7) === 0) {
      this.stage.killAll();
      return;
    }
    const pids = this.stage.pids();
    const pid =
      this.random(3) === 0 ? this.stage.supervisor.pid : pids[this.random(pids.length || 1)];
    try {
      process.kill(pid, "SIGKILL");
    } catch {
      // It has just ended.
    }
  }

  /** Whether the check of the project is green at a commit. */
  isGreen(commit) {
    const dir = join(this.stage.root, `at-${commit}`);
    fs.mkdirSync(dir);
    const tar = execFileSync("git", ["archive", commit], { cwd: this.project, maxBuffer: 1 << 26 });
    execFileSync("tar", ["-x"], { cwd: dir, input: tar });
    const end = spawnSync("sh", ["check.sh"], { cwd: dir });
    fs.rmSync(dir, { recursive: true });
    return end.status === 0;
  }

  /** @returns what is wrong; empty for a good night */
  judge() {
    const wrong = [];
    const { stage } = this;
    const shared = this.git("show", `${TARGET}:shared.txt`).split("\n");
    const files = new Set(this.git("ls-tree", "-r", "--name-only", TARGET).split("\n"));
    this.landed = 0;
    this.waiting = [];
    for (const { id, kind } of this.items) {
      const times =
        kind === "shared"
          ? shared.filter((line) => line === `item ${id}`).length
          : Number(files.has(`files/${id}.txt`));
      const end = stage.recordOf(`${id}.land`) ?? stage.recordOf(id);
      const says = end?.status === "completed" && end.output?.landing === "landed";
      if (times > 1) wrong.push(`${id} (${kind}) landed ${times} times`);
      if (says !== (times === 1))
        wrong.push(
          `${id} (${kind}): its record says ${says ? "landed" : "not landed"}, and git says ${times}`,
        );
      if (times === 1 && kind === "impossible") wrong.push(`${id} landed, and cannot be done`);
      if (times === 1) this.landed++;
      else
        this.waiting.push(
          `${id} (${kind}): ${String(end?.error ?? "no record")
            .split("\n")[0]
            .slice(0, 120)}`,
        );
      const reclaimed = stage
        .events()
        .filter((one) => one.task_id === id && one.event === "reclaimed").length;
      const record = stage.recordOf(id);
      if (
        ["limit", "plain", "shared"].includes(kind) &&
        record?.attempts > 1 + reclaimed + this.kills
      )
        wrong.push(`${id} (${kind}): ${record.attempts} attempts`);
    }
    for (const name of this.people)
      if (!files.has(name)) wrong.push(`the commit of a person is gone: ${name}`);
    const tips = new Set(
      this.git("reflog", "show", "--format=%H", `refs/heads/${TARGET}`).split("\n"),
    );
    for (const tip of tips) if (!this.isGreen(tip)) wrong.push(`the target was red at ${tip}`);
    this.tips = tips.size;
    const patches = new Map();
    for (const commit of this.git("rev-list", "--no-merges", `main..${TARGET}`).split("\n")) {
      const diff = execFileSync("git", ["diff-tree", "-p", commit], { cwd: this.project });
      const [patch] = execFileSync("git", ["patch-id", "--stable"], { input: diff })
        .toString()
        .split(" ");
      if (patch !== "" && patches.has(patch))
        wrong.push(`the same change twice: ${commit}, ${patches.get(patch)}`);
      patches.set(patch, commit);
    }
    const report = JSON.parse(stage.mailchute("report", "--since", "1h", "--json"));
    const named = new Set(
      report.work.filter(({ state }) => state === "landed").map(({ task_id: id }) => id),
    );
    if (named.size !== this.landed)
      wrong.push(`the report says that ${named.size} landed, git ${this.landed}`);
    if (stage.inFlight().length > 0) wrong.push(`left: ${stage.inFlight().join(", ")}`);
    if (stage.pids().length > 0) wrong.push(`processes are left: ${stage.pids().join(", ")}`);
    const fsck = this.git("fsck", "--connectivity-only");
    if (fsck.includes("missing") || fsck.includes("broken")) wrong.push(`git fsck: ${fsck}`);
    const can = this.items.filter(({ kind }) => kind !== "impossible").length;
    this.can = can;
    if (this.landed < 0.95 * can)
      wrong.push(`${this.landed} of ${can} items that can land have landed`);
    return wrong;
  }
}

let bad = 0;
for (let n = 0; n < Number(flags.nights); n++) {
  const night = new Night(Number(flags.seed) + n);
  let wrong;
  try {
    wrong = await night.play();
  } catch (error) {
    wrong = [`${error.stack}\n${read(join(night.stage.root, "supervisor.log")).slice(-2000)}`];
  }
  night.stage.killAll();
  const seconds = Math.round((Date.now() - night.stage.startedMs) / 1000);
  const row = {
    seed: night.seed,
    items: night.items.length,
    can: night.can,
    landed: night.landed,
    tips: night.tips,
    kills: night.kills,
    seconds,
    wrong,
  };
  if (flags.json) console.log(JSON.stringify(row));
  else {
    console.log(
      `night ${row.seed}: ${row.landed} of ${row.can} that can land have landed (${row.items} items), ${row.kills} kills, ${row.tips} tips all green, ${seconds} s${wrong.length === 0 ? "" : ": WRONG"}`,
    );
    for (const one of [...wrong, ...(wrong.length > 0 ? (night.waiting ?? []) : [])])
      console.log(`   ${one}`);
  }
  if (wrong.length > 0) bad++;
  else if (!flags.keep)
    fs.rmSync(night.stage.root, { recursive: true, force: true, maxRetries: 5 });
}
console.log(`${Number(flags.nights) - bad} passed, ${bad} failed`);
process.exit(bad === 0 ? 0 : 1);
